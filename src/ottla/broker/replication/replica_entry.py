"""One partition of a follower's fetch session: the last request for it, and its answer."""

from typing import Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.fetch.read import as_part, failed
from ottla.broker.fetch.sessions import PartitionKey
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.leader_shell import NOT_LEADER, Answer
from ottla.broker.replication.ledger_news import attach_ledger
from ottla.replica.effects import Diverging, Refuse
from ottla.wire.messages.fetch import EpochEndOffset, LeaderIdAndEpoch, PartitionData


class EntrySession(Protocol):
    """The fetch session that an entry belongs to; `ReplicaSession` is one."""

    def add_ready(self, entry: "ReplicaEntry") -> None:
        """Note that the question of `entry` can be answered."""
        ...

    def add_news(self, entry: "ReplicaEntry") -> None:
        """Note that the high watermark or the log start of `entry` has changed."""
        ...


class ReplicaEntry:
    """One partition of a session; implements `broker.partitions.watcher.Watcher`."""

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

    def __init__(self, session: EntrySession, key: PartitionKey) -> None:
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
        # Where the follower's log begins, as it last reported.
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
    """Bytes of the records that could be sent now."""
    assert entry.partition is not None
    log = entry.partition.log
    try:
        return log.read(entry.offset, entry.max_bytes, max_offset=log.log_end_offset).size
    except OttlaError:
        return entry.max_bytes  # There is an error to send.


def has_news(entry: ReplicaEntry) -> bool:
    """Whether the high watermark or log start differ from those last sent to the follower."""
    partition = entry.partition
    return partition is not None and (
        partition.high_watermark != entry.sent_high_watermark
        or partition.log_start_offset != entry.sent_log_start
    )


# Hot: once per partition of an answer.
def answer(entry: ReplicaEntry, budget: int, *, first: bool) -> tuple[PartitionData, int]:
    """Build the answer with up to `budget` bytes of records; return it and their size."""
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
            data.records = as_part(located)
    except OttlaError as error:
        refused = failed(entry.key.partition, error.code)
        refused.nonce = entry.nonce
        refused.current_leader = _leader(partition)
        refused.log_start_offset = log.log_start_offset
        attach_ledger(partition, refused, 0)
        return refused, 0
    return data, located.size


def good(entry: ReplicaEntry) -> PartitionData:
    """An answer without an error and without records yet; the request counts as answered."""
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
        # Send the last values again if the follower has not reached them yet.
        start = entry.log_start if is_start_new else partition.log_start_offset
        attach_ledger(partition, data, start)
    return data


def _leader(partition: Partition) -> LeaderIdAndEpoch:
    image = partition.image
    return LeaderIdAndEpoch(
        leader_id=-1 if image is None else image.leader, leader_epoch=partition.leader_epoch
    )
