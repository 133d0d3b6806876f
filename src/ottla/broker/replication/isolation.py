"""Whether this broker is cut off from those who follow it, though its store says that they live."""

from collections.abc import Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.broker.partition import Partition
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.replica.standing import NEVER, Standing


class Isolation:
    """Looks now and then; `every_ms` is how often, and `silence_ms_max` how long is too long.

    Followers fetch whether or not there are records: so a leader that nobody reaches any more,
    clients neither, is found out as well.
    """

    def __init__(
        self, sessions: ReplicaSessions, clock: Clock, *, every_ms: float, silence_ms_max: int
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._every_ms = every_ms
        self._silence_ms_max = silence_ms_max
        self._looked_ms = NEVER

    def look(self, standing: Standing, led: Iterable[Partition]) -> bool:
        """Whether others are to lead what is `led` here."""
        now_ms, before_ms = self._clock.monotonic_ms(), self._looked_ms
        self._looked_ms = now_ms
        if now_ms - before_ms > 3 * self._every_ms:
            # It was this process that stood still: what was sent to it has yet to be read.
            return False
        silent = self._silent(standing, now_ms)
        return bool(silent) and any(
            p.leader is not None and p.leader.is_isolated(silent, now_ms) for p in led
        )

    def _silent(self, standing: Standing, now_ms: int) -> dict[BrokerId, None]:
        longest_ms = now_ms - self._silence_ms_max
        return {
            broker_id: None
            for broker_id in standing.live
            if broker_id != standing.broker_id and self._sessions.heard_ms(broker_id) <= longest_ms
        }
