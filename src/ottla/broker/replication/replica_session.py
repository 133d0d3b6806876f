"""The fetch session of a follower: the partitions that it requests, and their answers.

An out-of-sync follower is answered twice a second even without news, so that it fetches again.
Its fetch lets the leader retry an ISR change that failed earlier, for example because the store
rejected it or the follower was not registered then.
"""

from typing import Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.fetch.read import FILE_REGIONS_MAX, as_one_of_many, failed
from ottla.broker.fetch.reply import by_topic
from ottla.broker.fetch.sessions import PartitionKey
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.ledger_news import attach_ledger, learn_lost
from ottla.broker.replication.roles import NOT_LEADER, Answer
from ottla.broker.replication.throttles import ReplicaThrottle
from ottla.replica.effects import Diverging, Refuse
from ottla.replica.registration import NEVER
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from ottla.wire.parts import FileRegion


class ReplicaEntry:
    """One partition of a session; implements `broker.partitions.waiters.Watcher`."""

    __slots__ = (
        "answer",
        "asked",
        "key",
        "log_start",
        "max_bytes",
        "nonce",
        "offset",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "session",
    )

    def __init__(self, session: "ReplicaSession", key: PartitionKey) -> None:
        self.session = session
        self.key = key
        self.partition: Partition | None = None
        # Whether the follower waits for an answer about this partition.
        self.asked = False
        self.answer: Answer = NOT_LEADER
        self.nonce = 0
        self.offset = 0
        self.max_bytes = 0
        self.sent_high_watermark = -1
        self.sent_log_start = -1
        # The log start offset that the follower last reported.
        self.log_start = -1

    def attach(self, partition: Partition | None) -> None:
        """Follow the changes of `partition` from now on."""
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


def waiting_bytes(entry: ReplicaEntry) -> int:
    """Return the size in bytes of the records that could be sent now."""
    assert entry.partition is not None
    log = entry.partition.log
    try:
        return log.read(entry.offset, entry.max_bytes, max_offset=log.log_end_offset).size
    except OttlaError:
        return entry.max_bytes  # Large enough to send the error at once.


def has_news(entry: ReplicaEntry) -> bool:
    """Whether the high watermark or log start offset changed since the last answer."""
    partition = entry.partition
    return partition is not None and (
        partition.high_watermark != entry.sent_high_watermark
        or partition.log_start_offset != entry.sent_log_start
    )


# Hot: once per partition of an answer.
def answer(entry: ReplicaEntry, budget: int, *, first: bool) -> tuple[PartitionData, int]:
    """Build an answer with up to `budget` bytes of records; return it and the records' size."""
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
            attach_ledger(partition, data, 0)
        return data, 0
    data = good(entry)
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
        if located.size:
            data.records = as_one_of_many(located)
    except OttlaError as error:
        refused = failed(entry.key.partition, error.code)
        refused.nonce = entry.nonce
        refused.current_leader = _leader(partition)
        refused.log_start_offset = log.log_start_offset
        attach_ledger(partition, refused, 0)
        return refused, 0
    return data, located.size


def good(entry: ReplicaEntry) -> PartitionData:
    """Build an answer without error or records, and mark the request as answered."""
    partition = entry.partition
    assert partition is not None
    entry.asked = False
    entry.sent_high_watermark = partition.high_watermark
    is_start_new = entry.sent_log_start != partition.log_start_offset
    entry.sent_log_start = partition.log_start_offset
    data = PartitionData(
        partition_index=entry.key.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        current_leader=_leader(partition),
        nonce=entry.nonce,
        records=b"",
    )
    if is_start_new or partition.log.ledger.history.compacted_below:
        # A new log start needs the ledger entries since the follower's own log start.
        start = entry.log_start if is_start_new else partition.log_start_offset
        attach_ledger(partition, data, start)
    return data


def _leader(partition: Partition) -> LeaderIdAndEpoch:
    image = partition.image
    return LeaderIdAndEpoch(
        leader_id=-1 if image is None else image.leader, leader_epoch=partition.leader_epoch
    )


_OUTSIDERS_MS = 500


class WaitingFetch(Protocol):
    """The follower's fetch that waits for an answer; `DelayedReplicaFetch` is one."""

    def wake(self) -> None:
        """Schedule a check, once per turn of the loop, whether the fetch can be answered."""
        ...

    def answer(self) -> None:
        """Answer now with the records available."""
        ...


class ReplicaSession:
    """The partitions that one fetcher of a follower requests, and the answers due to it."""

    def __init__(
        self,
        session_id: int,
        broker_id: int,
        broker_epoch: int,
        throttle: ReplicaThrottle,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self._throttle = throttle
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        # The epoch that the next request must carry.
        self.epoch = 1
        # The times of the last fetch and of the fetch before it. The follower sent the last fetch
        # after it read the answer to the earlier one, so it followed until that earlier time.
        self.used_ms = NEVER
        self.followed_ms = NEVER
        self.entries: dict[PartitionKey, ReplicaEntry] = {}
        # The follower's replica.fetch.min.bytes.
        self.min_bytes = 1
        # Entries to answer before all others, and entries whose changes are added to the next
        # answer.
        self._ready: dict[ReplicaEntry, None] = {}
        self._news: dict[ReplicaEntry, None] = {}
        # Entries whose records wait for the throttle. Invariant: no entry is in both `_ready` and
        # `_held`.
        self._held: dict[ReplicaEntry, None] = {}
        self.waiting: WaitingFetch | None = None
        # Whether a new high watermark is sent at once, because consumers may read from followers.
        self.news_are_urgent = False
        # The last time that out-of-sync followers were answered without changes.
        self._outsiders_ms = now_ms

    @property
    def is_ready(self) -> bool:
        if self.news_are_urgent and self._news:
            return True
        if self.min_bytes <= 1:
            return bool(self._ready)
        return self._has_enough()

    def _has_enough(self) -> bool:
        """Whether there are `min_bytes` of records, or something that must be sent at once."""
        size_bytes = 0
        for entry in self._ready:
            if isinstance(entry.answer, (Diverging, Refuse)) or not entry.has_records:
                return True
            size_bytes += waiting_bytes(entry)
            if size_bytes >= self.min_bytes:
                return True
        return False

    def add_ready(self, entry: ReplicaEntry) -> None:
        self._held.pop(entry, None)
        if self._is_held_back(entry):
            self._ready.pop(entry, None)
            self._held[entry] = None
            return
        self._ready[entry] = None
        if self.waiting is not None:
            self.waiting.wake()

    def add_news(self, entry: ReplicaEntry) -> None:
        self._news[entry] = None
        if self.news_are_urgent and self.waiting is not None:
            self.waiting.wake()

    def ask(
        self, key: PartitionKey, wanted: FetchPartition, partition: Partition | None, answer: Answer
    ) -> None:
        """Enter a request for a partition; `answer` is the leader core's answer to it."""
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = ReplicaEntry(self, key)
        entry.attach(partition)
        if partition is not None and wanted.log_start_offset != entry.log_start:
            entry.log_start = wanted.log_start_offset
            partition.on_follower_start(self.broker_id, wanted.log_start_offset)
        if partition is not None and wanted.lost:
            learn_lost(partition, wanted.lost)
        entry.asked = True
        entry.answer = answer
        entry.nonce = wanted.nonce
        entry.offset = wanted.fetch_offset
        entry.max_bytes = wanted.partition_max_bytes
        self._held.pop(entry, None)
        self._ready.pop(entry, None)
        if self._is_held_back(entry):
            self._held[entry] = None
        elif isinstance(answer, (Diverging, Refuse)) or entry.has_records:
            self._ready[entry] = None
        else:
            if has_news(entry):
                self._news[entry] = None

    def forget(self, key: PartitionKey) -> None:
        """Remove a partition, which the follower no longer requests."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            entry.attach(None)
            self._ready.pop(entry, None)
            self._news.pop(entry, None)
            self._held.pop(entry, None)

    @property
    def held_ms(self) -> int:
        """Milliseconds until throttled records may be sent; negative if none are throttled."""
        return self._throttle.wait_ms() if self._held else -1

    def close(self) -> None:
        """Remove all partitions, and stop watching them."""
        for entry in self.entries.values():
            entry.attach(None)
        self.entries.clear()
        self._ready.clear()
        self._news.clear()
        self._held.clear()

    def respond(self, max_bytes: int, now_ms: int) -> FetchResponse:
        """Answer with up to `max_bytes` of records; the rest waits for the next fetch."""
        answers: list[tuple[PartitionKey, PartitionData]] = []
        size_bytes = file_regions = 0
        self._let_go()
        for entry in list(self._ready):
            is_full = size_bytes >= max_bytes and size_bytes > 0
            if is_full or file_regions >= FILE_REGIONS_MAX:
                break
            del self._ready[entry]
            if self._is_held_back(entry):
                self._held[entry] = None
                continue
            self._news.pop(entry, None)
            data, size = self._answer(entry, max_bytes - size_bytes, first=size_bytes == 0)
            size_bytes += size
            file_regions += data.records.__class__ is FileRegion
            answers.append((entry.key, data))
        answers += [
            (entry.key, good(entry))
            for entry in self._news
            if entry.asked
            and entry not in self._ready
            and entry not in self._held
            and has_news(entry)
        ]
        self._news.clear()
        if now_ms - self._outsiders_ms >= _OUTSIDERS_MS:
            self._outsiders_ms = now_ms
            answers += [(entry.key, good(entry)) for entry in self._outsiders()]
        return FetchResponse(session_id=self.id, responses=by_topic(answers))

    def _answer(
        self, entry: ReplicaEntry, budget: int, *, first: bool
    ) -> tuple[PartitionData, int]:
        """Build an answer, limited to the throttle's bytes but to at least one batch."""
        throttle = self._throttle
        if not throttle.is_on or not self._is_throttled(entry):
            return answer(entry, budget, first=first)
        data, size = answer(entry, min(budget, throttle.available()), first=True)
        throttle.record(size)
        return data, size

    def _is_throttled(self, entry: ReplicaEntry) -> bool:
        """Whether the throttle covers an entry's next records. Errors are never throttled."""
        return (
            entry.partition is not None
            and not isinstance(entry.answer, (Diverging, Refuse))
            and entry.has_records
            and self._throttle.covers(entry.partition, BrokerId(self.broker_id))
        )

    def _is_held_back(self, entry: ReplicaEntry) -> bool:
        throttle = self._throttle
        return throttle.is_on and throttle.available() <= 0 and self._is_throttled(entry)

    def _let_go(self) -> None:
        """Move the held entries to the ready ones, if the throttle allows any bytes."""
        if self._held and (not self._throttle.is_on or self._throttle.available() > 0):
            held, self._held = self._held, {}
            self._ready.update(held)

    def _outsiders(self) -> list[ReplicaEntry]:
        """Return the entries that wait for records and whose ISR lacks this follower."""
        broker_id = BrokerId(self.broker_id)
        return [
            entry
            for entry in self.entries.values()
            if entry.asked
            and entry not in self._ready
            and entry not in self._held
            and entry.partition is not None
            and entry.partition.leader is not None
            and broker_id not in entry.partition.leader.term.isr
        ]
