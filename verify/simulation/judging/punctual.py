"""Watches all leaders of a world for the law *no needless shrink* of `verify.punctuality`.

It sees every append, every fetch that a broker hears and every change of an ISR that a leader
proposes, and goes by these alone. A pause of the leader's own process is not its followers' fault.
"""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.replica_session import ReplicaSession
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.replication import Replication
from ottla.broker.replication.roles import Answer, IsrStore, Roles
from ottla.replica.effects import OUT_OF_RANGE, Diverging, ServeFrom
from ottla.replica.isr import IsrChange
from ottla.replica.leader import Leader
from ottla.wire.messages.fetch import FetchPartition, FetchRequest
from verify.punctuality import FollowerLimits, TermSeen

# A process that stood still for so long may not judge others before it has listened so long.
_PAUSE_S = 0.4
_LISTENING_MS = 50

Fail = Callable[[str], None]


class _Term:
    """A leader's term; implements `broker.partition.Watcher`."""

    def __init__(self, partition: Partition, leader: Leader, now_ms: Callable[[], int]) -> None:
        self.leader = leader
        own, replicas = leader.term.broker_id, leader.term.negotiation.committed.replicas
        followers = [broker for broker in replicas if broker != own]
        self.seen = TermSeen(partition.log_end_offset, followers, now_ms())
        # The registration of each follower that fetched last.
        self.registered: dict[int, int] = {}
        self._partition = partition
        self._now_ms = now_ms
        partition.watchers[self] = None

    def on_appended(self) -> None:
        self.seen.on_end(self._partition.log_end_offset, self._now_ms())

    def on_committed(self) -> None:
        pass

    def on_role(self) -> None:
        if self._partition.leader is not self.leader:
            self._partition.watchers.pop(self, None)


class Paused(Protocol):
    """A machine, as far as its pauses are concerned."""

    # From when to when its process stood still last, in seconds of the loop.
    last_pause: tuple[float, float]


class BrokerWatch:
    """All leaders of one broker; stands before the part that takes changes to the store."""

    def __init__(self, machine: Paused, replication: Replication, fail: Fail) -> None:
        self._machine = machine
        self._fail = fail
        self.now_ms = replication.monotonic_ms
        self._terms: dict[Partition, _Term] = {}
        self._contact_ms: dict[int, int] = {}
        self._writer: IsrStore = replication.roles.isr_writer
        replication.roles.isr_writer = self
        replication.roles.on_role.subscribe(self.on_role)
        sessions = replication.sessions
        sessions.__class__ = _WatchedSessions
        assert isinstance(sessions, _WatchedSessions)
        sessions.watch = self

    # ------------------------------------------------------------ what is heard

    def on_role(self, partition: Partition) -> None:
        """A role has changed: a new term begins with it, or none."""
        leader = partition.leader
        known = self._terms.get(partition)
        if known is not None and known.leader is not leader:
            del self._terms[partition]
        if leader is not None and partition not in self._terms:
            self._terms[partition] = _Term(partition, leader, self.now_ms)

    def on_contact(self, broker_id: int) -> None:
        """A fetch of a follower came, whatever it asks for."""
        self._contact_ms[broker_id] = self.now_ms()

    def on_room(self, follower: int, topic_id: UUID, wanted: FetchPartition) -> None:
        """A follower reports whether its disk is full, before the leader decides on that."""
        for partition, term in self._terms.items():
            place = partition.topic_partition
            if partition.topic_id == topic_id and place.partition == wanted.partition:
                term.seen.on_room(follower, self.now_ms(), is_full=wanted.is_full)

    def on_fetch(
        self,
        partition: Partition,
        session: ReplicaSession,
        wanted: FetchPartition,
        answer: Answer,
    ) -> None:
        """A follower asked for a partition, and will be answered so."""
        term = self._terms.get(partition)
        if term is None:
            return
        is_accepted = isinstance(answer, ServeFrom)
        if not is_accepted and not isinstance(answer, Diverging) and answer not in OUT_OF_RANGE:
            return
        follower, now_ms = session.broker_id, self.now_ms()
        if term.registered.get(follower) != session.broker_epoch or not is_accepted:
            term.registered[follower] = session.broker_epoch
            term.seen.on_forgotten(follower, now_ms)
        if is_accepted:
            term.seen.on_fetch(follower, wanted.fetch_offset, now_ms)

    # ------------------------------------------------------------ what is proposed

    def propose(self, leading: Roles, partition: Partition, change: IsrChange) -> None:
        """Judge a change, and let it go on its way."""
        term = self._terms.get(partition)
        if term is not None and term.leader is partition.leader:
            self._judge(partition, term, change)
        self._writer.propose(leading, partition, change)

    def read(self, leading: Roles, partition: Partition) -> None:
        """Let a question go on its way."""
        self._writer.read(leading, partition)

    def _judge(self, partition: Partition, term: _Term, change: IsrChange) -> None:
        now_ms = self.now_ms()
        awake_ms = self._awake_ms()
        leader = term.leader
        isr = leader.term.isr
        leaving = [broker for broker in isr if broker not in change.after.isr]
        for follower in leaving:
            term.seen.on_contact(follower, max(self._contact_ms.get(follower, awake_ms), awake_ms))
        limits = FollowerLimits(leader.lag_ms_max, leader.silence_ms_max, leader.term.min_isr)
        wrongs = term.seen.needless(isr, leaving, limits, now_ms)
        unheard = [follower for follower in leaving if not term.seen.is_full(follower)]
        if unheard and not wrongs and now_ms - awake_ms < _LISTENING_MS:
            wrongs = [f"needless shrink: {unheard} leave, judged after a pause without listening"]
        for wrong in wrongs:
            self._fail(f"{wrong}, of {partition.topic_partition} led by {leader.term.broker_id}")
        for follower, _ in change.joining:
            term.seen.on_joining(follower, now_ms)

    def _awake_ms(self) -> int:
        """When the last long pause of this broker's process was over."""
        since_s, until_s = self._machine.last_pause
        return int(until_s * 1000) if until_s - since_s > _PAUSE_S else -_LISTENING_MS


class _WatchedSessions(ReplicaSessions):
    """The broker's own, which it became once they were made."""

    watch: BrokerWatch

    def take(self, body: FetchRequest, now_ms: int) -> ReplicaSession:
        self.watch.on_contact(body.replica_state.replica_id)
        return super().take(body, now_ms)

    def _ask(
        self, session: ReplicaSession, topic_id: UUID, wanted: FetchPartition
    ) -> tuple[Partition | None, Answer]:
        self.watch.on_room(session.broker_id, topic_id, wanted)
        partition, answer = super()._ask(session, topic_id, wanted)
        if partition is not None:
            self.watch.on_fetch(partition, session, wanted, answer)
        return partition, answer
