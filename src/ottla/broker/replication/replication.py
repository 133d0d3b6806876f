"""Replication of one broker, put together: roles, fetchers, sessions, ISR changes, timers."""

import asyncio
from collections.abc import Callable, Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.broker.partitions.own_standing import OwnStanding
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.replication.fetchers import Fetchers
from ottla.broker.replication.isolation import Isolation
from ottla.broker.replication.lag_limits import LagLimits
from ottla.broker.replication.listening import Listening
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.roles import Roles
from ottla.broker.replication.throttles import Throttles
from ottla.coordination.store import Session
from ottla.metadata.image import ClusterImage
from ottla.replica.standing import Standing

# How often to look whether a leader's session is in doubt, or confirmed again.
_CERTAINTY_S = 0.1
# A timer so much later than it should be means that this process stood still; it then listens
# for as long before it judges followers.
_LATE_MS = 250
_LISTENING_MS = 100


class Replication:
    """Looks after leaders and followers while the broker is registered, and after it no more."""

    def __init__(
        self,
        clock: Clock,
        own: OwnStanding,
        roles: Roles,
        fetchers: Fetchers,
        partitions: Partitions,
        sessions: ReplicaSessions,
        moves: LogDirMoves,
        throttles: Throttles,
        isolation: Isolation,
        limits: LagLimits,
    ) -> None:
        self._clock = clock
        self._own = own
        self.roles = roles
        self._fetchers = fetchers
        self._partitions = partitions
        self.sessions = sessions
        self.moves = moves
        self.throttles = throttles
        self._isolation = isolation
        self._look_every_ms = limits.look_every_ms
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._was_confirmed = True
        self._listening = Listening(
            clock.monotonic_ms(),
            pause_ms=int(_CERTAINTY_S * 1000) + _LATE_MS,
            listening_ms=_LISTENING_MS,
        )
        # The store session that the present registration belongs to.
        self._session: Session | None = None

    @property
    def standing(self) -> Standing:
        """The broker's id and epochs under which it leads and follows."""
        return self._own.current

    def start(self) -> None:
        """Begin to look after followers that fall behind (P17)."""
        self._every(self._look_every_ms / 1000, self._check_lag)
        self._every(_CERTAINTY_S, self._check_certainty)
        self.moves.resume()

    def close(self) -> None:
        """Lead and follow no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._fetchers.close()

    def on_registered(self, standing: Standing, session: Session) -> None:
        """The broker is registered (anew); roles of an earlier registration are given up."""
        self.on_unregistered()
        self._session = session
        self._confirm(standing)
        self._own.current = standing

    def _confirm(self, standing: Standing) -> None:
        """For three quarters of a lease after a renewal no other broker can be elected here."""
        if self._session is not None:
            lease_ms = standing.session_ms
            standing.confirmed_until_ms = self._session.confirmed_ms + lease_ms * 3 // 4

    def on_unregistered(self) -> None:
        """The session has ended, and with it the registration. Await LeaderAndIsr (S16)."""
        for partition in self._partitions:
            self.roles.resign(partition, "the broker's session has ended")
            partition.leader_epoch = -1
            partition.version = -1

    def on_image(self, image: ClusterImage) -> None:
        """Brokers came or went, or topics, whose copies may be throttled."""
        self.throttles.configure(image)
        self.standing.live = {broker.id: broker.epoch for broker in image.brokers.values()}

    def _check_lag(self) -> None:
        self._isolation.look(self.standing, self._led())
        self._judge_when_listened()

    def _judge_when_listened(self) -> None:
        """Judge the followers, after a pause once what was sent to this process has been read.

        The process may stand still again before that: so the timer that waited checks once more.
        """
        self._notice_pause()
        judge = self._judge_when_listened
        waiting = self._timers.pop(judge, None)
        if waiting is not None:
            waiting.cancel()
        left_ms = self._listening.left_ms()
        if left_ms:
            loop = asyncio.get_running_loop()
            self._timers[judge] = loop.call_later(left_ms / 1000, judge)
        else:
            self._judge_followers()

    def _notice_pause(self) -> None:
        self._listening.on_ran(self._clock.monotonic_ms())

    def _judge_followers(self) -> None:
        if self._isolation.is_undecided:
            return
        heard_ms: dict[BrokerId, int] = {}
        for partition in self._partitions:
            leader = partition.leader
            # Where all is committed no follower is late, as in nearly all partitions.
            if leader is not None and (
                partition.high_watermark < partition.log.log_end_offset
                or leader.term.negotiation.retry_at_ms is not None
            ):
                heard_ms = heard_ms or self._heard()
                self.roles.on_deadline(partition, heard_ms)

    def _heard(self) -> dict[BrokerId, int]:
        """When each live broker last fetched here, or could have done so for the first time."""
        return {
            broker_id: max(self.sessions.heard_ms(broker_id), self._listening.awake_ms)
            for broker_id in self.standing.live
        }

    def _check_certainty(self) -> None:
        self._notice_pause()
        self._confirm(self.standing)
        confirmed = self.roles.is_confirmed(self._clock.monotonic_ms())
        # Between two looks a session may be in doubt and then renewed: partitions judged meanwhile
        # were closed, and an idle partition is not judged again.
        if confirmed and self._was_confirmed and not self.roles.closed_in_doubt:
            return
        if self._was_confirmed and not confirmed:
            self.sessions.tell_followed()
        self._was_confirmed = confirmed
        self.roles.closed_in_doubt = False
        for partition in self._led():
            self.roles.settle(partition)

    def _led(self) -> Iterable[Partition]:
        return [partition for partition in self._partitions if partition.leader is not None]

    def _every(self, interval_s: float, chore: Callable[[], None]) -> None:
        def repeat() -> None:
            self._timers[chore] = loop.call_later(interval_s, repeat)
            chore()

        loop = asyncio.get_running_loop()
        self._timers[chore] = loop.call_later(interval_s, repeat)
