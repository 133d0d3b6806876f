"""What followers fetch from this broker: a session per fetcher, asked and answered by changes.

A follower asks for a partition once, with the end it holds, and is answered once: with records,
an error, a divergence, or what else is new. Then it asks again. So a fetch names only what has
changed since the one before, and a thousand idle partitions cost nothing. Partitions tell their
sessions what happens to them; a session that waits is answered at the end of the turn.
"""

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.fetch_read import as_part, failed
from ottla.broker.fetch_reply import by_topic
from ottla.broker.fetch_sessions import PartitionKey
from ottla.broker.partition import Partition
from ottla.broker.replication.roles import NOT_LEADER, Answer, Roles
from ottla.replica.effects import Diverging, Refuse
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

if TYPE_CHECKING:
    from ottla.broker.partitions import Partitions
    from ottla.broker.replication.delayed_replica_fetch import DelayedReplicaFetch

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_IDLE_MS_MAX = 120_000
_OUTSIDERS_MS = 500


class Entry:
    """One partition of a session; implements `broker.partition.Watcher`."""

    __slots__ = (
        "answer",
        "asked",
        "key",
        "log_start",
        "max_bytes",
        "nonce",
        "offset",
        "partition",
        "session",
        "told_high_watermark",
        "told_log_start",
    )

    def __init__(self, session: "ReplicaSession", key: PartitionKey) -> None:
        self.session = session
        self.key = key
        self.partition: Partition | None = None
        # Whether the follower waits for an answer to its last question.
        self.asked = False
        self.answer: Answer = NOT_LEADER
        self.nonce = 0
        self.offset = 0
        self.max_bytes = 0
        self.told_high_watermark = -1
        self.told_log_start = -1
        # Where the follower's own log begins, as it said last.
        self.log_start = -1

    def attach(self, partition: Partition | None) -> None:
        """Be told of what happens to `partition` from now on."""
        if self.partition is not partition:
            if self.partition is not None:
                self.partition.watchers.pop(self, None)
            if partition is not None:
                partition.watchers[self] = None
            self.partition = partition

    def on_appended(self) -> None:
        if self.asked:
            self.session.add_ready(self)

    def on_committed(self) -> None:
        if self.asked:
            self.session.add_news(self)

    def on_role(self) -> None:
        if self.asked:
            self.answer = NOT_LEADER
            self.session.add_ready(self)

    @property
    def has_records(self) -> bool:
        partition = self.partition
        return partition is not None and partition.log_end_offset > self.offset


class ReplicaSession:
    """What one fetcher of one follower wants, and what there is to tell it."""

    def __init__(self, session_id: int, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        self.id = session_id
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        # The epoch the next request must carry.
        self.epoch = 1
        self.used_ms = now_ms
        self.entries: dict[PartitionKey, Entry] = {}
        # What the follower waits for: replica.fetch.min.bytes of its own.
        self.min_bytes = 1
        # Answered before anything else; and what is told when an answer goes out anyway.
        self._ready: dict[Entry, None] = {}
        self._news: dict[Entry, None] = {}
        self.waiting: DelayedReplicaFetch | None = None
        # Whether news alone are worth an answer: somebody reads from followers.
        self.news_are_urgent = False
        # When outsiders were last asked to ask again.
        self._outsiders_ms = now_ms

    @property
    def is_ready(self) -> bool:
        if self.news_are_urgent and self._news:
            return True
        if self.min_bytes <= 1:
            return bool(self._ready)
        return self._has_enough()

    def _has_enough(self) -> bool:
        """Whether the records there are make `min_bytes`, or something is to be told at once."""
        size_bytes = 0
        for entry in self._ready:
            if isinstance(entry.answer, (Diverging, Refuse)) or not entry.has_records:
                return True
            size_bytes += _waiting_bytes(entry)
            if size_bytes >= self.min_bytes:
                return True
        return False

    def add_ready(self, entry: Entry) -> None:
        self._ready[entry] = None
        if self.waiting is not None:
            self.waiting.wake()

    def add_news(self, entry: Entry) -> None:
        self._news[entry] = None
        if self.news_are_urgent and self.waiting is not None:
            self.waiting.wake()

    def ask(
        self, key: PartitionKey, wanted: FetchPartition, partition: Partition | None, answer: Answer
    ) -> None:
        """Take a question in; `answer` is what the partition's leader says of it."""
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry(self, key)
        entry.attach(partition)
        if partition is not None and wanted.log_start_offset != entry.log_start:
            entry.log_start = wanted.log_start_offset
            partition.on_follower_start(self.broker_id, wanted.log_start_offset)
        entry.asked = True
        entry.answer = answer
        entry.nonce = wanted.nonce
        entry.offset = wanted.fetch_offset
        entry.max_bytes = wanted.partition_max_bytes
        if isinstance(answer, (Diverging, Refuse)) or entry.has_records:
            self._ready[entry] = None
        else:
            self._ready.pop(entry, None)
            if _has_news(entry):
                self._news[entry] = None

    def forget(self, key: PartitionKey) -> None:
        """The follower wants no more of this partition."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            entry.attach(None)
            self._ready.pop(entry, None)
            self._news.pop(entry, None)

    def close(self) -> None:
        """Be told of nothing any more."""
        for entry in self.entries.values():
            entry.attach(None)
        self.entries.clear()
        self._ready.clear()
        self._news.clear()

    def respond(self, max_bytes: int, now_ms: int) -> FetchResponse:
        """Tell what there is, up to `max_bytes` of records; the rest waits for the next fetch."""
        told: list[tuple[PartitionKey, PartitionData]] = []
        size_bytes = 0
        for entry in list(self._ready):
            if size_bytes >= max_bytes and size_bytes > 0:
                break
            del self._ready[entry]
            self._news.pop(entry, None)
            data, size = _answer(entry, max_bytes - size_bytes, first=size_bytes == 0)
            size_bytes += size
            told.append((entry.key, data))
        told += [
            (entry.key, _good(entry))
            for entry in self._news
            if entry.asked and entry not in self._ready and _has_news(entry)
        ]
        self._news.clear()
        if now_ms - self._outsiders_ms >= _OUTSIDERS_MS:
            self._outsiders_ms = now_ms
            told += [(entry.key, _good(entry)) for entry in self._outsiders()]
        return FetchResponse(session_id=self.id, responses=by_topic(told))

    def _outsiders(self) -> list[Entry]:
        """Questions that wait for records, of a follower that is not in sync."""
        broker_id = BrokerId(self.broker_id)
        return [
            entry
            for entry in self.entries.values()
            if entry.asked
            and entry not in self._ready
            and entry.partition is not None
            and entry.partition.leader is not None
            and broker_id not in entry.partition.leader.isr
        ]


def _waiting_bytes(entry: Entry) -> int:
    """Bytes of the records that could be sent now."""
    assert entry.partition is not None
    log = entry.partition.log
    try:
        return log.read(entry.offset, entry.max_bytes, max_offset=log.log_end_offset).size
    except OttlaError:
        return entry.max_bytes  # There is an error to tell.


def _has_news(entry: Entry) -> bool:
    partition = entry.partition
    return partition is not None and (
        partition.high_watermark != entry.told_high_watermark
        or partition.log_start_offset != entry.told_log_start
    )


# Hot: once per partition of an answer.
def _answer(entry: Entry, budget: int, *, first: bool) -> tuple[PartitionData, int]:
    answer = entry.answer
    partition = entry.partition
    if partition is None or isinstance(answer, Refuse):
        entry.asked = False
        error = answer.error if isinstance(answer, Refuse) else ErrorCode.NOT_LEADER_OR_FOLLOWER
        data = failed(entry.key.partition, error)
        data.nonce = entry.nonce
        if partition is not None:
            data.current_leader = _leader(partition)
            data.log_start_offset = partition.log_start_offset
        return data, 0
    data = _good(entry)
    if isinstance(answer, Diverging):
        data.diverging_epoch = EpochEndOffset(epoch=answer.epoch, end_offset=answer.end_offset)
        return data, 0
    log = partition.log
    try:
        located = log.read(
            entry.offset,
            max(0, min(entry.max_bytes, budget)),
            max_offset=log.log_end_offset,
            min_one_batch=first,
        )
    except OttlaError as error:
        refused = failed(entry.key.partition, error.code)
        refused.nonce = entry.nonce
        refused.current_leader = _leader(partition)
        refused.log_start_offset = log.log_start_offset
        return refused, 0
    if located.size:
        data.records = as_part(located)
    return data, located.size


def _good(entry: Entry) -> PartitionData:
    """An answer without an error, and without records so far. The question is answered by it."""
    partition = entry.partition
    assert partition is not None
    entry.asked = False
    entry.told_high_watermark = partition.high_watermark
    entry.told_log_start = partition.log_start_offset
    return PartitionData(
        partition_index=entry.key.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        current_leader=_leader(partition),
        nonce=entry.nonce,
        records=b"",
    )


def _leader(partition: Partition) -> LeaderIdAndEpoch:
    image = partition.image
    return LeaderIdAndEpoch(
        leader_id=-1 if image is None else image.leader, leader_epoch=partition.leader_epoch
    )


class ReplicaSessions:
    """All sessions of followers with this broker."""

    def __init__(
        self,
        partitions: "Partitions",
        roles: Roles,
        rng: random.Random,
        *,
        news_are_urgent: bool = False,
    ) -> None:
        self._partitions = partitions
        self._roles = roles
        self._rng = rng
        self._news_are_urgent = news_are_urgent
        self._sessions: dict[int, ReplicaSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def take(self, body: FetchRequest, now_ms: int) -> ReplicaSession:
        """The session of a follower's request, its questions taken in. Raises OttlaError."""
        session = self._session(body, now_ms)
        session.min_bytes = body.min_bytes
        for topic in body.forgotten_topics_data:
            for index in topic.partitions:
                session.forget(PartitionKey(topic.topic_id, index))
        for asked in body.topics:
            for wanted in asked.partitions:
                key = PartitionKey(asked.topic_id, wanted.partition)
                partition, answer = self._ask(session, asked.topic_id, wanted)
                session.ask(key, wanted, partition, answer)
        if not self._roles.is_confirmed(now_ms):
            # Nobody but the followers can tell whether this broker still leads (S33).
            self._roles.on_still_followed(
                session.broker_id, (e.partition for e in session.entries.values()), session.used_ms
            )
        session.used_ms = now_ms
        return session

    def close(self, session: ReplicaSession) -> None:
        """Forget a session."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        session.close()

    def _session(self, body: FetchRequest, now_ms: int) -> ReplicaSession:
        state = body.replica_state
        if body.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._drop(
                each
                for each in self._sessions.values()
                if each.id == body.session_id
                or (each.broker_id == state.replica_id and each.broker_epoch < state.replica_epoch)
                or now_ms - each.used_ms > _IDLE_MS_MAX
            )
            session = ReplicaSession(self._free_id(), state.replica_id, state.replica_epoch, now_ms)
            session.news_are_urgent = self._news_are_urgent
            self._sessions[session.id] = session
            return session
        found = self._sessions.get(body.session_id)
        if found is None or found.broker_id != state.replica_id:
            raise OttlaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no session {body.session_id}"
            )
        if found.epoch != body.session_epoch or found.broker_epoch != state.replica_epoch:
            raise OttlaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {found.id} expects epoch {found.epoch}, not {body.session_epoch}",
            )
        found.epoch = found.epoch % (2**31 - 1) + 1
        return found

    def _ask(
        self, session: ReplicaSession, topic_id: UUID, wanted: FetchPartition
    ) -> tuple[Partition | None, Answer]:
        try:
            partition = self._partitions.get_by_id(topic_id, wanted.partition)
        except OttlaError as error:
            return None, Refuse(error.code)
        answer = self._roles.on_follower_fetch(
            partition,
            session.broker_id,
            session.broker_epoch,
            wanted.nonce,
            wanted.fetch_offset,
            wanted.last_fetched_epoch,
            wanted.current_leader_epoch,
        )
        return partition, answer

    def _drop(self, sessions: Iterable[ReplicaSession]) -> None:
        for session in list(sessions):
            if session.waiting is not None:
                session.waiting.answer()
            self.close(session)

    def _free_id(self) -> int:
        while True:
            session_id = self._rng.randint(1, 2**31 - 1)
            if session_id not in self._sessions:
                return session_id
