"""The other sessions of a shared file. A thread for each waits for its lock, and so its end."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence

from ottla.coordination.sqlite.file import SessionRow
from ottla.coordination.sqlite.session_lock import OthersLock, remove


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
            try:
                self._loop.call_soon_threadsafe(self._on_end, peer.row)
            except RuntimeError:
                # The loop is closed: no callback is left to run.
                return
