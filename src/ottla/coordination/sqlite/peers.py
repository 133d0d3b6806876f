"""The other sessions of a shared file. A thread for each waits for its lock, and so its end."""

import asyncio
import contextlib
import os
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from ottla.base import file_lock, system
from ottla.coordination.interface.client import call_on_loop
from ottla.coordination.sqlite.file import SessionRow


class Peer:
    """Another session, watched until its holder releases it or dies."""

    def __init__(self, row: SessionRow, path: str) -> None:
        """Open the peer's file. Raises FileNotFoundError if the session has ended already."""
        self.row = row
        self.path = path
        self._lock = OthersLock(path)

    def silent_since_ms(self, at_least_ms: int) -> int:
        """The time of its last heartbeat, or `at_least_ms` if that is later."""
        return max(self._lock.last_beat_ms() or 0, at_least_ms)

    def is_silent(self, now_ms: int) -> bool:
        """Whether its lease has run out."""
        beat_ms = self._lock.last_beat_ms()
        return beat_ms is not None and beat_ms + self.row.lease_ms < now_ms

    def wait_for_end(self) -> None:
        """Block until the holder releases the lock or dies."""
        self._lock.wait_until_free()
        remove(self.path)
        self._lock.close()


class FilePeers:
    """The peers of one client of the file. `on_end(row)` is called on the loop."""

    def __init__(
        self, folder: str, loop: asyncio.AbstractEventLoop, on_end: Callable[[SessionRow], None]
    ) -> None:
        self._folder = folder
        self._loop = loop
        self._on_end = on_end
        # Replaced as a whole: another thread reads it.
        self.living: tuple[Peer, ...] = ()
        self._closed = False

    def update(self, rows: Sequence[SessionRow], own_id: int) -> None:
        """Watch exactly the sessions that exist now."""
        wanted = {row.id: row for row in rows if row.id != own_id}
        known = {peer.row.id: peer for peer in self.living if peer.row.id in wanted}
        for session_id, row in wanted.items():
            if session_id not in known:
                peer = self._watch(row)
                if peer is not None:
                    known[session_id] = peer
        self.living = tuple(known.values())

    def close(self) -> None:
        """Stop calling `on_end`. Waiting threads continue until their sessions have ended."""
        self._closed = True
        self.living = ()

    def _watch(self, row: SessionRow) -> Peer | None:
        try:
            peer = Peer(row, os.path.join(self._folder, row.lock_file))
        except FileNotFoundError:
            self._on_end(row)
            return None
        # A daemon: it sleeps in the kernel, and must not keep the process from exiting.
        threading.Thread(
            target=self._wait, args=(peer,), name=f"ottla-peer-{row.id}", daemon=True
        ).start()
        return peer

    def _wait(self, peer: Peer) -> None:
        peer.wait_for_end()
        if not self._closed:
            call_on_loop(self._loop, self._on_end, peer.row)


_BEAT = struct.Struct(">Q")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """An id that differs after each boot of the system; empty if the system has none."""
    if sys.platform != "linux":
        return ""
    return _BOOT_ID.read_text().strip()


class SessionLock:
    """The lock on a session's file, held from `take` until `release` or the end of the process."""

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
    """Remove a session's file, if it exists and the system permits it (Windows keeps open files).

    A file that remains is removed when a process next opens the store.
    """
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.unlink(path)
