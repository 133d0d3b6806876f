"""Worker processes that tell what they do by lines of JSON."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Events:
    """What all workers tell, in the order of arrival; kept in the file `log` as well."""

    def __init__(self, log: Path) -> None:
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._log = log.open("a", encoding="utf-8", buffering=1)

    def put(self, event: dict[str, Any]) -> None:
        self._log.write(json.dumps(event) + "\n")
        self._queue.put(event)

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None where there is none within `timeout_s`."""
        try:
            return self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None


class Worker:
    """A Python module run as a process; its JSON lines become events, the rest goes to a log."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        events: Events,
        log: Path,
        env: Mapping[str, str],
    ) -> None:
        self.module = module
        self.log = log
        with log.open("ab") as errors:
            self._child = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **env},
                # Its own group: Spark's Java process ends with it.
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, args=(events,), daemon=True)
        self._reader.start()

    @property
    def killed(self) -> bool:
        """Whether it died of kill -9."""
        return self._child.poll() == -signal.SIGKILL

    def alive(self) -> bool:
        """Whether it runs, or has told something that is not read yet."""
        return self._child.poll() is None or self._reader.is_alive()

    def tell(self, word: str) -> None:
        """Write a line to its standard input; the dead do not hear it."""
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(f"{word}\n".encode())
            self._child.stdin.flush()

    def stop(self) -> None:
        """End it and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def _read(self, events: Events) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            events.put(json.loads(line))
