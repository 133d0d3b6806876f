"""Starts members (`member.py`) as processes of their own, and waits for what they say."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Far more than anything here takes, also on a machine with much else to do.
PATIENCE_S = 120


class Member:
    """A process with a session. `said` grows by a line per event; each is waited for once."""

    def __init__(self, address: str, name: str, lease_ms: int) -> None:
        self.said: list[str] = []
        self._waited_for = 0
        self._news = threading.Condition()
        self.child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.integration.coordination.member",
                address,
                name,
                str(lease_ms),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, line: str) -> None:
        """Wait until it says a line, after the one that was last waited for."""
        with self._news:
            heard = self._news.wait_for(lambda: line in self.said[self._waited_for :], PATIENCE_S)
            assert heard, f"waited for {line!r}, heard {self.said[self._waited_for :]}"
            self._waited_for = self.said.index(line, self._waited_for) + 1

    def tell(self, command: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(f"{command}\n")
        self.child.stdin.flush()

    def pause(self) -> None:
        self.child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.child.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            with self._news:
                self.said.append(line.strip())
                self._news.notify_all()


@contextlib.contextmanager
def members(address: str, *names: str, lease_ms: int) -> Iterator[list[Member]]:
    """Members that all see each other; killed at the end."""
    started: list[Member] = []
    try:
        for name in names:
            started.append(Member(address, name, lease_ms))
            started[-1].wait_for("ready")
        for member in started:
            member.wait_for(f"ids {','.join(sorted(names))}")
        yield started
    finally:
        for member in started:
            member.kill()
