"""A machine's disk in memory. A power cut loses unflushed data; operations can be made to fail."""

import errno
import os
from collections.abc import Callable
from random import Random

from ottla.storage.disk.memory_filesystem import MemoryFileSystem, Reading
from ottla.storage.files.names import LOG_SUFFIX
from ottla.testing.simulation.virtual.process import PROCESS

# Operations that change what the disk holds.
WRITES = frozenset({"append", "fsync", "truncate", "rename", "unlink", "mkdir", "rmdir", "open"})


class SimulatedDisk(MemoryFileSystem):
    """A simulated disk. Brokers treat it as slow, and use it outside the event loop.

    Faults stay until they are repaired, or the machine is switched off.
    """

    in_memory = False

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms=now_ms)
        # The operations that fail with EIO, each on paths that contain its text.
        self._failing: dict[str, str] = {}

    def fail(self, operation: str, where: str = "") -> None:
        """Make every `operation` (`fsync`, `read`, …) fail on paths that contain `where`."""
        self._failing[operation] = where
        self.fault = self._decide

    def repair(self) -> None:
        """End all failures, and remove the limit of space. Lost data stays lost."""
        self._failing.clear()
        self.fault = None
        self.reading = None
        self.capacity_bytes = None

    def trouble_reads(self, trouble: Reading) -> None:
        """Pass the bytes that brokers read from closed segments through `trouble`."""

        def read(path: str, position: int, found: bytes) -> bytes:
            # Reads by the simulation itself are not changed.
            process = PROCESS.get()
            if process is None or not path.endswith(LOG_SUFFIX) or not self._is_closed(path):
                return found
            return trouble(path, position, found)

        self.reading = read

    def _is_closed(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return any(
            other > name and other.endswith(LOG_SUFFIX) for other in self._folder(folder).names
        )

    def fill(self, free_bytes: int) -> None:
        """Fill the disk until only `free_bytes` are free."""
        self.capacity_bytes = None
        self.capacity_bytes = self._used_bytes() + free_bytes

    def crash(self, random: Random | None = None) -> None:
        super().crash(random)
        self.reading = None
        if random is not None:
            self._failing.clear()
        elif self._failing:
            self.fault = self._decide

    def _decide(self, operation: str, path: str) -> OSError | None:
        where = self._failing.get(operation)
        if where is None or where not in path:
            return None
        return OSError(errno.EIO, os.strerror(errno.EIO), path)

    def _used_bytes(self) -> int:
        self.capacity_bytes = 1 << 62
        room = self.room()
        assert room is not None
        return (1 << 62) - room
