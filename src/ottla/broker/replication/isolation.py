"""Whether this broker is cut off from those who follow it, though its store says that they live."""

import asyncio
from collections.abc import Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.lag_limits import LagLimits
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.source_link import SourcePeers, Spawn
from ottla.broker.runtime.signal import Signal
from ottla.replica.standing import NEVER, Standing


class Isolation:
    """Looks now and then; `limits` say how often, and how long a silence is too long.

    Followers fetch whether or not there are records: so a leader that nobody reaches any more,
    clients neither, is found out as well. Before the silence is too long the ways to them are
    tried: where one is open, they have too much to do, and nothing would be better elsewhere.
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
        # Known before the silent would be proposed out of the ISR.
        self._doubt_ms = limits.silence_ms_max // 2
        self._trial_ms = limits.silence_ms_max // 4
        self._looked_ms = NEVER
        self._is_trying = False
        # Whether it may be this broker that is cut off: nobody is to be proposed out meanwhile, who
        # would then be missing to the one that leads instead.
        self.is_undecided = False

    def look(self, standing: Standing, led: Iterable[Partition]) -> None:
        """Find out whether others are to lead what is `led` here."""
        now_ms, before_ms = self._clock.monotonic_ms(), self._looked_ms
        self._looked_ms = now_ms
        # Where this process stood still, what was sent to it has yet to be read.
        if self._is_trying or now_ms - before_ms > 3 * self._every_ms:
            return
        since_ms = now_ms - self._doubt_ms
        silent = self._silent(standing, since_ms)
        if silent and any(p.leader and p.leader.is_isolated(silent, since_ms) for p in led):
            self._is_trying = self.is_undecided = True
            self._spawn(self._try(silent, since_ms))

    def _silent(self, standing: Standing, since_ms: int) -> list[BrokerId]:
        return [
            broker_id
            for broker_id in standing.live
            if broker_id != standing.broker_id and self._sessions.heard_ms(broker_id) <= since_ms
        ]

    async def _try(self, silent: list[BrokerId], since_ms: int) -> None:
        """Try the ways to all that are silent; where none is open, it is this broker."""
        within_s = self._trial_ms / 1000
        try:
            ways = [self._peers.reaches_known(broker_id, within_s) for broker_id in silent]
            is_reached = any(await asyncio.gather(*ways))
            if is_reached:
                self.is_undecided = False
                await asyncio.sleep(within_s)
        finally:
            self._is_trying = self.is_undecided = False
        still = all(self._sessions.heard_ms(broker_id) <= since_ms for broker_id in silent)
        if still and not is_reached:
            self._on_isolated.emit()
