"""A session of a ZooKeeper client, with the last confirmation by the ensemble's leader."""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.base.clock import SystemClock
from ottla.coordination.interface.errors import StoreError

_CONFIRMATIONS_PER_LEASE = 6
_CLOCK = SystemClock()


class ZookeeperSession:
    """A session until ZooKeeper reports that it has expired, or it is closed.

    `sync` asks the ensemble's leader: kazoo's own pings are answered by any server, also by one
    that the leader has lost. `leave` ends the session. `granted_ms` is the time-out that
    ZooKeeper made of `lease_ms`.
    """

    def __init__(
        self,
        session_id: int,
        generation: int,
        lease_ms: int,
        granted_ms: int,
        credential: str,
        *,
        sync: Callable[[], Awaitable[None]],
        leave: Callable[[], Awaitable[None]],
    ) -> None:
        self.id = session_id
        self.generation = generation
        self.credential = credential
        # ZooKeeper rounds the end up to a tick, and followers report their clients' heartbeats to
        # the leader half a tick late. A timeout is two ticks or more, unless the server's
        # minSessionTimeout is lower.
        self.ends_within_ms = 2 * granted_ms
        self.expired = False
        self.confirmed_ms = _CLOCK.monotonic_ms()
        self._interval_s = lease_ms / _CONFIRMATIONS_PER_LEASE / 1000
        self._sync = sync
        self._leave = leave
        self._callbacks: list[Callable[[], None]] = []
        self._loop = asyncio.get_running_loop()
        self._keeper = self._loop.create_task(self._keep_confirmed())

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def confirm(self, sent_ms: int) -> None:
        """Note that the leader answered, in this session, a request sent at `sent_ms`."""
        if not self.expired:
            self.confirmed_ms = max(self.confirmed_ms, sent_ms)

    def end(self) -> None:
        """Note that the session has ended, and notify its holder."""
        if self.expired:
            return
        self.expired = True
        self._keeper.cancel()
        for callback in self._callbacks:
            self._loop.call_soon(callback)

    async def close(self) -> None:
        if not self.expired:
            self.end()
            await self._leave()

    async def _keep_confirmed(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            if _CLOCK.monotonic_ms() - self.confirmed_ms >= self._interval_s * 1000:
                try:
                    await self._sync()
                except StoreError:
                    # The session stays unconfirmed; the next round asks again.
                    continue
