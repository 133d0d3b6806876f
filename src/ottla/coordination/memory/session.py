"""A session with the store in memory: unlimited, or with a lease on the loop's time."""

import asyncio
from collections.abc import Callable

from ottla.base.clock import Clock
from ottla.coordination.interface.store import StoreUnavailable
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.tree import MemoryTree

# How many heartbeats a client sends in a lease, at least.
_HEARTBEATS_PER_LEASE = 6


class MemorySession:
    """A session that lives until it is closed or made to expire.

    With faults its client must send a heartbeat within the lease, and learns of the session's end
    only when it can be reached again.
    """

    def __init__(
        self,
        tree: MemoryTree,
        session_id: int,
        generation: int,
        lease_ms: int,
        clock: Clock,
        *,
        client: str,
        faults: StoreFaults | None,
    ) -> None:
        self.id = session_id
        self.generation = generation
        self.expired = False
        self._tree = tree
        self._lease_s = lease_ms / 1000
        self._clock = clock
        self._client = client
        self._faults = faults
        self._callbacks: list[Callable[[], None]] = []
        self._loop = asyncio.get_running_loop()
        self._confirmed_ms = clock.monotonic_ms()
        self._renewed_s = self._loop.time()
        self._abandoned = False
        self._timers: list[asyncio.TimerHandle] = []
        if faults is not None:
            faults.on_return(self.renew)
            self._beat()
            self._watch_over()

    @property
    def confirmed_ms(self) -> int:
        alone = self._faults is None and not self.expired
        return self._clock.monotonic_ms() if alone else self._confirmed_ms

    @property
    def ends_within_ms(self) -> int:
        return round(self._lease_s * 1000)

    @property
    def credential(self) -> str:
        return ""

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    async def close(self) -> None:
        if self._faults is not None and not self.expired:
            try:
                await self._faults.exchange(
                    self._client, lambda: self._tree.end_session(self.id), changes=False
                )
            except StoreUnavailable:
                # The session ends with its lease; for its holder it has ended now.
                self._notify_expired()
        self.expire()
        self._notify_expired()

    def expire(self) -> None:
        """End the session, as the store does when its lease runs out."""
        self._tree.end_session(self.id)
        self._stop_timers()
        if self._faults is None:
            self._notify_expired()
        elif not (self.expired or self._abandoned):
            self._faults.notify(self._client, self._notify_expired)

    def abandon(self) -> None:
        """Let the holder's process die: it sends no more heartbeats, and is not notified."""
        self._abandoned = True

    def renew(self) -> None:
        """Restart the lease, after a heartbeat or an outage of the store."""
        self._renewed_s = self._loop.time()

    def confirm(self, sent_ms: int) -> None:
        """Note the store's answer to what the holder sent at `sent_ms` by its own clock."""
        if self._tree.is_alive(self.id):
            self._confirmed_ms = max(self._confirmed_ms, sent_ms)

    def _notify_expired(self) -> None:
        if self.expired or self._abandoned:
            return
        self.expired = True
        for callback in self._callbacks:
            self._loop.call_soon(callback)

    def _beat(self) -> None:
        assert self._faults is not None
        if self._abandoned or not self._tree.is_alive(self.id):
            return
        if self._faults.reachable(self._client):
            self.renew()
            self.confirm(self._clock.monotonic_ms())
        self._again(self._lease_s / _HEARTBEATS_PER_LEASE, self._beat)

    def _watch_over(self) -> None:
        """On the store's side, end the session when the lease has run out."""
        assert self._faults is not None
        left_s = self._renewed_s + self._lease_s - self._loop.time()
        if not self._tree.is_alive(self.id):
            return
        if left_s <= 0 and not self._faults.out:
            self.expire()
        else:
            self._again(max(left_s, self._lease_s / _HEARTBEATS_PER_LEASE), self._watch_over)

    def _again(self, delay_s: float, callback: Callable[[], None]) -> None:
        now_s = self._loop.time()
        self._timers = [t for t in self._timers if t.when() > now_s and not t.cancelled()]
        self._timers.append(self._loop.call_later(delay_s, callback))

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
