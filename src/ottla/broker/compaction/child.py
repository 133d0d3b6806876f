"""The process that cleans one log: it reads a job, writes the outcome, and exits.

The broker starts it as `python -m ottla.broker.compaction.child`. It exits when its standard input
is closed, so it never outlives the broker. It only writes files with the suffix `.cleaned`, which
recovery ignores and the next start of the broker removes.
"""

import json
import os
import sys
import threading
import time

from ottla.base.errors import OttlaError
from ottla.base.system import lower_priority
from ottla.storage.cleaner.compaction import Cleaning
from ottla.storage.cleaner.job import CleaningJob
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.filesystem import OsFileSystem

# The lower CPU priority of this process.
_NICE = 10
_LONGEST_SLEEP_S = 0.1


class CleaningThrottle:
    """Limits the bytes per second (0: no limit), and exits if the broker has ended."""

    def __init__(self, bytes_per_second: float, input_descriptor: int) -> None:
        self._rate = bytes_per_second
        self._input = input_descriptor
        self._broker_gone = threading.Event()
        # A thread, because not every system can poll a pipe.
        threading.Thread(target=self._wait_for_end, daemon=True).start()
        self._due_s = time.monotonic()

    def __call__(self, count: int) -> None:
        self._check_broker()
        if self._rate <= 0:
            return
        now_s = time.monotonic()
        # At most one second of unused time is made up for.
        self._due_s = max(self._due_s, now_s - 1.0) + count / self._rate
        while (wait_s := self._due_s - time.monotonic()) > 0:
            time.sleep(min(wait_s, _LONGEST_SLEEP_S))
            self._check_broker()

    def _check_broker(self) -> None:
        if self._broker_gone.is_set():
            sys.exit(3)

    def _wait_for_end(self) -> None:
        """Wait until the broker ends, which closes its end of the pipe."""
        while os.read(self._input, 1):
            pass
        self._broker_gone.set()


def main() -> int:
    """Read a job, run it, and write its outcome or error as JSON."""
    lower_priority(_NICE)
    descriptor = sys.stdin.fileno()
    line = bytearray()
    while not line.endswith(b"\n"):
        found = os.read(descriptor, 1 << 16)
        if not found:
            return 3
        line += found
    job = CleaningJob.decode(line.decode())
    began_s = time.monotonic()
    try:
        throttle = CleaningThrottle(job.bytes_per_second, descriptor)
        outcome = Cleaning(OsFileSystem(), job, throttle).run()
        outcome.elapsed_ms = int((time.monotonic() - began_s) * 1000)
        answer = {"outcome": outcome.encode()}
    except LogCorrupt as error:
        answer = {"corrupt": error.message, "path": error.path}
    except OttlaError as error:
        answer = {"error": error.message}
    except OSError as error:
        answer = {"error": str(error), "errno": str(error.errno)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
