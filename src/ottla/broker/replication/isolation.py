"""Detects that this broker is cut off from followers that are still registered."""

import asyncio
from collections.abc import Callable, Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.liveness import LagLimits
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.source_link import SourcePeers, Spawn
from ottla.broker.runtime.signal import Signal
from ottla.replica.registration import NEVER, Registration


class Isolation:
    """Checks at intervals whether followers have stopped fetching because of the network.

    Followers fetch even if there are no new records, so their silence also reveals an idle leader
    that no client reaches. Before the silence exceeds the limit this broker connects to the silent
    followers. If one connection succeeds, they are merely slow, and another leader would not help.
    """

    def __init__(
        self,
        sessions: ReplicaSessions,
        peers: SourcePeers,
        clock: Clock,
        spawn: Spawn,
        on_isolated: Signal[[]],
        limits: LagLimits,
    ) -> None:
        self._sessions = sessions
        self._peers = peers
        self._clock = clock
        self._spawn = spawn
        self._on_isolated = on_isolated
        self._every_ms = limits.look_every_ms
        # Earlier than the time after which silent followers are removed from the ISR.
        self._doubt_ms = limits.silence_ms_max // 2
        self._trial_ms = limits.silence_ms_max // 4
        self._looked_ms = NEVER
        self._is_trying = False
        # Whether this broker may be cut off. It then removes no follower from the ISR, since one of
        # them must become the next leader.
        self.is_undecided = False

    def look(self, registration: Registration, led: Callable[[], Iterable[Partition]]) -> None:
        """Check whether this broker seems cut off from the followers of the partitions it leads."""
        now_ms, before_ms = self._clock.monotonic_ms(), self._looked_ms
        self._looked_ms = now_ms
        # After a pause of this process, the fetches that arrived meanwhile must be read first.
        if self._is_trying or now_ms - before_ms > 3 * self._every_ms:
            return
        since_ms = now_ms - self._doubt_ms
        silent = self._silent(registration, since_ms)
        if silent and any(p.leader and p.leader.is_isolated(silent, since_ms) for p in led()):
            self._is_trying = self.is_undecided = True
            self._spawn(self._try(silent, since_ms))

    def _silent(self, registration: Registration, since_ms: int) -> list[BrokerId]:
        return [
            broker_id
            for broker_id in registration.live
            if broker_id != registration.broker_id
            and self._sessions.contact_ms(broker_id) <= since_ms
        ]

    async def _try(self, silent: list[BrokerId], since_ms: int) -> None:
        """Connect to all silent brokers; if no connection succeeds, this broker is cut off."""
        within_s = self._trial_ms / 1000
        try:
            ways = [self._peers.reaches_known(broker_id, within_s) for broker_id in silent]
            is_reached = any(await asyncio.gather(*ways))
            if is_reached:
                self.is_undecided = False
                await asyncio.sleep(within_s)
        finally:
            self._is_trying = self.is_undecided = False
        still = all(self._sessions.contact_ms(broker_id) <= since_ms for broker_id in silent)
        if still and not is_reached:
            self._on_isolated.emit()
