"""The thread that sends this session's heartbeats, and checks the peers' heartbeats.

A heartbeat is a write to the session's file. The thread never waits for a disk, so that a slow
disk ends no session. A stopped process sends none, for the thread is stopped with it; nor does a
process whose loop has not turned for a whole lease.
"""

import asyncio
import threading
from collections.abc import Callable

from ottla.base.clock import SystemClock
from ottla.coordination.sqlite.peers import Peer
from ottla.coordination.sqlite.session_lock import SessionLock

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
            try:
                self._loop.call_soon_threadsafe(self._on_turn)
            except RuntimeError:
                return False
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
