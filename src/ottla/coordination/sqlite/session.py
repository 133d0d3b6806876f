"""A session in the shared file: a row, a locked file that proves it alive, and a lease."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from glob import escape, glob
from typing import Protocol, TypeVar
from uuid import uuid4

from ottla.base.clock import SystemClock
from ottla.coordination.interface.client import StoreSession, call_on_loop
from ottla.coordination.interface.errors import StoreError
from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.sqlite.file import SqliteFile
from ottla.coordination.sqlite.peers import OthersLock, Peer, SessionLock, boot_id, remove

_log = logging.getLogger(__name__)

T = TypeVar("T")

_ORPHAN_AGE_S = 60.0


class Ask(Protocol):
    """Runs a function on the store's thread; raises StoreError.

    With `always` it runs even if the caller is cancelled before its turn.
    """

    def __call__(self, function: Callable[[], T], *, always: bool = False) -> Awaitable[T]: ...


class SqliteSession(StoreSession):
    """A session that lasts until it is closed, or its process dies or pauses for a whole lease."""

    def __init__(
        self,
        file: SqliteFile,
        lease_ms: int,
        generation: int,
        *,
        ask: Ask,
        peers: Callable[[], tuple[Peer, ...]],
        on_silent: Callable[[Peer], None],
        on_changes: Callable[[ChangedPaths], None],
    ) -> None:
        super().__init__(generation)
        self._file = file
        self._lease_ms = lease_ms
        self._ask = ask
        self._peers = peers
        self._on_silent = on_silent
        self._on_changes = on_changes
        self._asking_late = False
        # Its row in the file; set on the store's thread first.
        self._entered: int | None = None

    async def begin(self) -> None:
        """Add the session to the file."""
        try:
            self.id = await self._ask(self._enter)
        except asyncio.CancelledError:
            # The store's thread adds it anyway, if it has begun to.
            await self._ask(self._take_back)
            raise
        self._lease = Lease(
            self._lock,
            self._lease_ms,
            self._loop,
            peers=self._peers,
            on_late=self._on_late,
            on_silent=self._on_silent,
        )

    @property
    def confirmed_ms(self) -> int:
        return self._lease.confirmed_ms

    @property
    def ends_within_ms(self) -> int:
        return self._lease_ms

    async def close(self) -> None:
        """End the session, even if the caller is cancelled meanwhile."""
        if self._note_expired():
            try:
                self._on_changes(await self._ask(self._leave, always=True))
            except StoreError as error:
                # The lock is released anyway, after which any peer can end the session.
                _log.warning("session %d was not removed: %s", self.id, error.message)

    async def end(self) -> None:
        """Release the lock and notify the holder, because the session is no longer in the file."""
        if self._note_expired():
            await self._ask(self._let_go, always=True)

    def _enter(self) -> int:
        lock_file = f"{self._file.path}.session-{uuid4().hex}"
        lock = SessionLock.take(lock_file)
        assert lock is not None, "no other process knows this name"
        self._lock = lock
        lock.beat(CLOCK.monotonic_ms())
        try:
            name = os.path.basename(lock_file)
            self._entered = self._file.begin_session(name, self._lease_ms, boot_id())
        except BaseException:
            lock.release()
            raise
        return self._entered

    def _take_back(self) -> None:
        """Undo `_enter`, if it ran: nothing will keep this session alive."""
        if self._entered is not None:
            try:
                self._file.end_session(self._entered)
            finally:
                self._lock.release()

    def _leave(self) -> ChangedPaths:
        try:
            return self._file.end_session(self.id)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._lease.stop()
        self._lock.release()

    def _on_late(self) -> None:
        """Ask for a confirmation. Runs on the lease's thread, which must not wait."""
        self._loop.call_soon_threadsafe(self._settle_late)

    def _settle_late(self) -> None:
        if not (self._asking_late or self.expired):
            self._asking_late = True
            self._settling = self._loop.create_task(self._settle())

    async def _settle(self) -> None:
        """Renew a late lease if the session still exists, which a transaction verifies."""
        try:
            if not await self._ask(lambda: self._file.transact(self._confirm)):
                await self.end()
        except StoreError:
            # The lease's next heartbeat asks again.
            return
        finally:
            self._asking_late = False

    def _confirm(self) -> bool:
        alive = self._file.nodes.is_alive(self.id)
        if alive:
            self._lease.confirm()
        return alive


def bury_the_dead(file: SqliteFile) -> ChangedPaths:
    """End sessions whose process is gone, and sessions from before a reboot."""
    everything = ChangedPaths()
    folder, name = os.path.split(file.path)
    known = set()
    for row in file.sessions():
        path = os.path.join(folder, row.lock_file)
        known.add(path)
        if row.boot_id != boot_id() or _is_free(path):
            changes = file.end_session(row.id)
            everything.data.update(changes.data)
            everything.children.update(changes.children)
            remove(path)
    # Files of processes that died before entering their session. The newest is spared, as it may
    # have just been made and not be locked yet.
    for path in glob(escape(os.path.join(folder, name)) + ".session-*"):
        if path not in known and _age_s(path) > _ORPHAN_AGE_S and _is_free(path):
            remove(path)
    return everything


def _age_s(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except FileNotFoundError:
        return 0.0


def _is_free(path: str) -> bool:
    try:
        lock = OthersLock(path)
    except FileNotFoundError:
        return True
    try:
        return lock.is_free()
    finally:
        lock.close()


_BEATS_PER_LEASE = 8
_LEAST_INTERVAL_MS = 10
# The system's monotonic clock, which all sessions of the file share.
CLOCK = SystemClock()


class Lease:
    """A lease, renewed until `stop`.

    It begins confirmed, so create it right after the session was added.
    """

    # Invariant: others end the session no earlier than lease_ms after confirmed_ms; if this thread
    # is paused between reading the clock and the heartbeat, no earlier than three quarters of that.
    confirmed_ms: int

    def __init__(
        self,
        lock: SessionLock,
        lease_ms: int,
        loop: asyncio.AbstractEventLoop,
        *,
        peers: Callable[[], tuple[Peer, ...]],
        on_late: Callable[[], None],
        on_silent: Callable[[Peer], None],
    ) -> None:
        """`on_late` must call `confirm` if the session still exists.

        `on_silent` must end a peer's session.

        Both are called on this thread.
        """
        self._lock = lock
        self._lease_ms = lease_ms
        self._loop = loop
        self._peers = peers
        self._on_late = on_late
        self._on_silent = on_silent
        self._stopped = threading.Event()
        self._loop_asked = False
        self._loop_turned_ms = self._round_ms = self._attentive_since_ms = CLOCK.monotonic_ms()
        self.confirm()
        self._thread = threading.Thread(target=self._run, name="ottla-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sending heartbeats; return when the thread has ended."""
        self._stopped.set()
        self._thread.join()

    def confirm(self) -> None:
        """Send a heartbeat now. The caller has ensured that no peer is ending the session."""
        now_ms = CLOCK.monotonic_ms()
        self._lock.beat(now_ms)
        self.confirmed_ms = now_ms

    def _run(self) -> None:
        interval_ms = wait_ms = max(self._lease_ms // _BEATS_PER_LEASE, _LEAST_INTERVAL_MS)
        while not self._stopped.wait(wait_ms / 1000):
            now_ms = CLOCK.monotonic_ms()
            if not self._ask_loop():
                return
            self._renew(now_ms)
            due_ms = self._look_at_peers(now_ms)
            # A peer's silence must be noticed when it becomes too long, not a heartbeat later.
            wait_ms = min(max(due_ms - now_ms, _LEAST_INTERVAL_MS), interval_ms)

    def _ask_loop(self) -> bool:
        """Have the loop confirm that it turns. False if the loop is closed for good."""
        if not self._loop_asked:
            self._loop_asked = True
            return call_on_loop(self._loop, self._on_turn)
        return True

    def _on_turn(self) -> None:
        self._loop_turned_ms = CLOCK.monotonic_ms()
        self._loop_asked = False

    def _renew(self, now_ms: int) -> None:
        if now_ms - self._loop_turned_ms > self._lease_ms:
            return
        if now_ms - self.confirmed_ms <= self._lease_ms // 4:
            # The time was read before: if this thread pauses here, the heartbeat still claims no
            # more than is true.
            self._lock.beat(now_ms)
            self.confirmed_ms = now_ms
        else:
            # A peer may be ending the session at this moment: ask the file first.
            self._on_late()

    def _look_at_peers(self, now_ms: int) -> int:
        """Find peers that were silent for a whole lease while this thread itself was running.

        Returns when the next one will be, if it sends no heartbeat before.
        """
        if now_ms - self._round_ms > self._lease_ms // 2:
            self._attentive_since_ms = now_ms
        self._round_ms = now_ms
        next_ms = now_ms + self._lease_ms
        for peer in self._peers():
            over_ms = peer.silent_since_ms(self._attentive_since_ms) + peer.row.lease_ms
            if over_ms < now_ms:
                self._on_silent(peer)
            else:
                next_ms = min(next_ms, over_ms + 1)
        return next_ms
