"""The file that proves a session alive: by its kernel lock, and by its heartbeat.

The kernel lock lasts exactly as long as the process that holds it: when the process dies, the
kernel frees the lock at once, and the waiting threads wake. The file's content is the time of
the last heartbeat, on the system's monotonic clock; it is never synced, for no session outlives
a boot. Each session has a file of its own, so that trying a lock takes over no session.
"""

import contextlib
import os
import struct
import sys
import threading
from pathlib import Path

from ottla.base import file_lock, system

_BEAT = struct.Struct(">Q")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """An id that differs after each boot of the system; empty if the system has none."""
    if sys.platform != "linux":
        return ""
    return _BOOT_ID.read_text().strip()


class SessionLock:
    """Held from `take` until `release` or the end of the process."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def take(cls, path: str) -> "SessionLock | None":
        """Lock the file, and create it if missing; None if another process holds the lock."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o600)
        if file_lock.try_lock(descriptor):
            return cls(descriptor, path)
        os.close(descriptor)
        return None

    def beat(self, now_ms: int) -> None:
        """Write a heartbeat. Does not wait for the disk."""
        system.pwrite(self._descriptor, _BEAT.pack(now_ms), 0)

    def release(self) -> None:
        """Remove the file and release the lock."""
        remove(self._path)
        os.close(self._descriptor)
        # Windows removes no open file; on other systems the file is already gone.
        remove(self._path)


class OthersLock:
    """Another session's file, read to see whether that session is alive."""

    def __init__(self, path: str) -> None:
        """Open the file.

        Raises FileNotFoundError if the holder has removed it, at the session's end.
        """
        self._descriptor = os.open(path, os.O_RDONLY | system.OPEN_FLAGS)
        # One thread reads while another may close.
        self._closing = threading.Lock()

    def last_beat_ms(self) -> int | None:
        """The time of the last heartbeat; None if it is unknown."""
        with self._closing:
            descriptor = self._descriptor
            content = system.pread(descriptor, _BEAT.size, 0) if descriptor >= 0 else b""
        return int(_BEAT.unpack(content)[0]) if len(content) == _BEAT.size else None

    def is_free(self) -> bool:
        """Whether the holder is dead or has released the lock. This takes over no session."""
        return file_lock.is_free(self._descriptor)

    def wait_until_free(self) -> None:
        """Block until the holder is dead or releases the lock."""
        file_lock.wait_until_free(self._descriptor)

    def close(self) -> None:
        with self._closing:
            os.close(self._descriptor)
            self._descriptor = -1


def remove(path: str) -> None:
    """Remove a session's file, unless it is gone, or open on a system that forbids it (Windows).

    A file that remains is removed when a process next opens the store.
    """
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)
