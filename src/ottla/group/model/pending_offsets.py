"""Offsets that transactions have committed and whose outcome is open (KIP-98, KIP-447)."""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.group.records.stored import CommittedOffset, OffsetRecord


class _Place(NamedTuple):
    """A group and a partition."""

    group_id: str
    topic_partition: TopicPartition


class PendingOffsets:
    """All pending offsets of one coordinator, by producer.

    A pending offset does not replace an offset that was written later, even if its transaction
    commits afterwards: the order in the log decides, not the order of the outcomes.
    """

    def __init__(self) -> None:
        # None stands for an offset that a later one has replaced: it only waits for its outcome.
        self._by_producer: dict[int, dict[_Place, CommittedOffset | None]] = {}
        # The producers with pending offsets for a group and partition, in the order of the log.
        self._producers: dict[_Place, dict[int, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def add(self, producer_id: int, record: OffsetRecord, *, is_overtaken: bool = False) -> None:
        """Add an offset of a transaction. If `is_overtaken`, a later offset has replaced it."""
        place = _Place(record.group_id, record.topic_partition)
        offset = None if is_overtaken else record.committed
        self._by_producer.setdefault(producer_id, {})[place] = offset
        waiting = self._producers.setdefault(place, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = None

    def is_pending(self, group_id: str, topic_partition: TopicPartition) -> bool:
        """Whether the outcome of a transaction may still change the offset."""
        return _Place(group_id, topic_partition) in self._producers

    def of_group(self, group_id: str) -> Iterator[TopicPartition]:
        """The partitions for which the group has pending offsets."""
        return (place.topic_partition for place in self._producers if place.group_id == group_id)

    def groups(self) -> set[str]:
        """The ids of all groups with pending offsets."""
        return {place.group_id for place in self._producers}

    def overtake(self, group_id: str, topic_partition: TopicPartition) -> None:
        """Drop pending offsets, as a later one was committed outside of transactions."""
        place = _Place(group_id, topic_partition)
        for producer_id in self._producers.get(place, ()):
            self._by_producer[producer_id][place] = None

    def end(self, producer_id: int, *, is_commit: bool) -> list[OffsetRecord]:
        """End the producer's transaction; return its committed offsets that were not replaced."""
        committed = []
        for place, offset in self._by_producer.pop(producer_id, {}).items():
            waiting = self._producers[place]
            if is_commit and offset is not None:
                committed.append(OffsetRecord(*place, offset))
                for earlier in waiting:
                    if earlier == producer_id:
                        break
                    self._by_producer[earlier][place] = None
            del waiting[producer_id]
            if not waiting:
                del self._producers[place]
        return committed
