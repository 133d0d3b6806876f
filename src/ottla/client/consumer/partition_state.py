"""The consumer's state of each partition, and the records it returns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from ottla.base.ids import TopicPartition
from ottla.record.codec import Record

NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class Records(Sequence[Record]):
    """Records of one partition in the order of their offsets, as `poll` returns them.

    It is a sequence: `len(batch)`, `batch[0]`, `for record in batch`. `records` is the list.
    """

    topic: str
    partition: int
    records: list[Record]
    high_watermark: int

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        return self.records[index]


class ConsumerRecord(NamedTuple):
    """One record with its topic, partition and offset. Times in ms; headers in their order.

    `key` and `value` are bytes or None, or the results of the consumer's deserializers.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]


Deserializer = Callable[[bytes], Any] | None


def consumed(
    topic: str, partition: int, records: Iterable[Record], key: Deserializer, value: Deserializer
) -> Iterator[ConsumerRecord]:
    """Return records with topic and partition, keys and values deserialized."""
    for each in records:
        yield ConsumerRecord(
            topic,
            partition,
            each.offset,
            each.timestamp,
            each.key if key is None or each.key is None else key(each.key),
            each.value if value is None or each.value is None else value(each.value),
            each.headers,
        )


class ConsumerRecords(Sequence[ConsumerRecord]):
    """The result of `poll`: records of one or more partitions, in offset order per partition.

    `by_partition` has the same records as lists, with keys and values as bytes.
    """

    def __init__(
        self, by_partition: list[Records], key: Deserializer = None, value: Deserializer = None
    ) -> None:
        self.by_partition = by_partition
        self._key, self._value = key, value

    def __repr__(self) -> str:
        return f"<ConsumerRecords: {len(self)} of {len(self.by_partition)} partitions>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        raise TypeError("records that were polled are a sequence, which has no hash")

    def __len__(self) -> int:
        return sum(len(part.records) for part in self.by_partition)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        for part in self.by_partition:
            yield from consumed(part.topic, part.partition, part.records, self._key, self._value)

    @overload
    def __getitem__(self, index: int) -> ConsumerRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[ConsumerRecord]: ...
    def __getitem__(self, index: int | slice) -> ConsumerRecord | list[ConsumerRecord]:
        return list(self)[index]


class RawBatches(NamedTuple):
    """Whole batches as the log contains them; the first may begin before the requested position."""

    topic: str
    partition: int
    batches: memoryview
    high_watermark: int
    log_start_offset: int


@dataclass(slots=True, eq=False)
class PartitionState:
    """One partition that is read. Offsets are -1 while unknown.

    Invariant: position <= fetch_offset once both are known.
    """

    topic: str
    partition: int
    # The offset of the next record to return; `commit` commits it.
    position: int = NO_OFFSET
    # The offset of the next record to fetch; ahead of `position` by the buffered records.
    fetch_offset: int = NO_OFFSET
    buffered_bytes: int = 0
    is_paused: bool = False
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    # Rises with every seek, so that answers to earlier requests are discarded.
    term: int = 0
    # No fetch before this time (monotonic seconds): set after errors.
    not_before_s: float = 0.0
    attempts: int = 0
    # Consecutive answers that begin with a damaged batch.
    damaged_answers: int = 0
    # Determines an unknown position: the name of an offset, or a time in ms.
    reset_to: int | None = None
    is_resolving: bool = False
    # The leader epoch of the record before `fetch_offset`; -1 if unknown.
    read_epoch: int = -1
    # The leader epoch in which `fetch_offset` was last found to continue the leader's log.
    checked_epoch: int = -1
    is_checking: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        """Continue at `offset`, and discard the buffered records.

        `leader_epoch` is the epoch of the record before `offset`, if known.
        """
        self.position = self.fetch_offset = offset
        self.buffered_bytes = 0
        self.term += 1
        self.attempts = self.damaged_answers = 0
        self.not_before_s = 0.0
        self.read_epoch = leader_epoch
        self.checked_epoch = -1

    def must_check(self, leader_epoch: int) -> bool:
        """Whether a leader's log in that epoch may differ from the records read (KIP-320)."""
        return 0 <= self.read_epoch < leader_epoch and self.checked_epoch < leader_epoch

    def forget_position(self, reset_to: int | None) -> None:
        """Determine the position again: at `reset_to` (EARLIEST, LATEST or a time in ms)."""
        self.seek(NO_OFFSET)
        self.reset_to = reset_to
