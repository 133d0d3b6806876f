"""The file that proves a session alive, twice.

Its kernel lock lives exactly as long as the process that holds it: when that dies, however it
dies, the kernel gives the lock up at once, and whoever waits for it wakes. Its content is when
the holder last showed life, on the system's monotonic clock; it is never synced, for no session
outlives a boot. Each session has a file of its own, so nobody takes another's place by trying.
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
    """Different after each start of the system; empty where the system does not tell."""
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
        """The lock of the file, made where it lacks; None where somebody else has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, 0o600)
        if file_lock.try_lock(descriptor):
            return cls(descriptor, path)
        os.close(descriptor)
        return None

    def beat(self, now_ms: int) -> None:
        """Show life. Waits for no disk."""
        system.pwrite(self._descriptor, _BEAT.pack(now_ms), 0)

    def release(self) -> None:
        """Remove the file and give the lock up."""
        remove(self._path)
        os.close(self._descriptor)
        # Windows removes no open file; elsewhere the file is gone by now.
        remove(self._path)


class OthersLock:
    """Another session's file, to see whether it lives."""

    def __init__(self, path: str) -> None:
        """Raises FileNotFoundError where it was removed, which its holder does at its end."""
        self._descriptor = os.open(path, os.O_RDONLY | system.OPEN_FLAGS)
        # One thread reads while another may close.
        self._closing = threading.Lock()

    def last_beat_ms(self) -> int | None:
        """When its holder last showed life; None where this is not known."""
        with self._closing:
            descriptor = self._descriptor
            content = system.pread(descriptor, _BEAT.size, 0) if descriptor >= 0 else b""
        return int(_BEAT.unpack(content)[0]) if len(content) == _BEAT.size else None

    def is_free(self) -> bool:
        """Whether its holder is dead or has given it up. Nobody can take a session over."""
        return file_lock.is_free(self._descriptor)

    def wait_until_free(self) -> None:
        """Block until its holder is dead or gives it up."""
        file_lock.wait_until_free(self._descriptor)

    def close(self) -> None:
        with self._closing:
            os.close(self._descriptor)
            self._descriptor = -1


def remove(path: str) -> None:
    """Remove a session's file, unless it is gone, or open where that prevents it (Windows).

    What is left over is removed when a process next opens the store.
    """
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)
