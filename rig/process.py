"""A child process with its log, its CPU seconds and its memory, and an end that is certain."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig import accounts
from rig.secret_search import SEARCH


class DiedEarly(RuntimeError):
    """The process ended, or stayed silent, before it was ready; the message ends with its log."""


@dataclass(slots=True)
class Process:
    """One started program. Everything it prints goes to `log`."""

    child: subprocess.Popen[bytes]
    log: Path
    started_s: float

    @property
    def pid(self) -> int:
        return self.child.pid

    def alive(self) -> bool:
        return self.child.poll() is None

    def log_tail(self, size: int = 8000) -> str:
        """The end of what the program printed."""
        text = self.log.read_bytes() if self.log.exists() else b""
        return text[-size:].decode("utf-8", "replace")

    def cpu_seconds(self) -> float:
        """User and system time of all threads so far; children not counted."""
        return accounts.cpu_seconds(self.pid)

    def rss_bytes(self) -> int:
        """Memory resident now."""
        return accounts.rss_bytes(self.pid)

    def rss_peak_bytes(self) -> int:
        """Most memory ever resident."""
        return accounts.rss_peak_bytes(self.pid)

    def terminate(self, timeout_s: float = 60.0) -> int:
        """Ask it to end, insist when it does not, and give its exit code."""
        if self.alive():
            self.child.terminate()
            try:
                self.child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait()

    def kill(self) -> None:
        """End it as a crash does: nothing of it runs any more."""
        if self.alive():
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()


def start(
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    session: bool = False,
) -> Process:
    """Start a program whose output is appended to `log`.

    With `session` it leads a session of its own, by which all that it starts can be found.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started_s = time.perf_counter()
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=session,
        )
    SEARCH.keep(log)
    return Process(child, log, started_s)
