"""The groups of one partition of `__consumer_offsets`, and how its records change them."""

from collections.abc import Iterator

from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup, Group
from ottla.group.model.pending_offsets import PendingOffsets
from ottla.group.model.turn import Moment, Turn
from ottla.group.records.consumer import (
    ConsumerGroupRecord,
    CurrentRecord,
    EpochRecord,
    MemberRecord,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.group.records.stored import CoordinatorRecord, GroupRecord, OffsetRecord
from ottla.group.share.groups import ShareGroups
from ottla.group.values.settings import GroupSettings
from ottla.group.values.timers import Timers


class Registry:
    """Groups by id, and their deadlines. Only `apply` changes the durable state.

    Invariant: an id is in one of `groups` (of the classic protocol), `consumer_groups`, `share`.
    """

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.timers = Timers()
        self.groups: dict[str, Group] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.share = ShareGroups(settings, self.timers, self._is_taken)
        self.pending = PendingOffsets()

    def any(self, group_id: str) -> AnyGroup | None:
        """The group of that id, of the classic or the consumer protocol."""
        return self.groups.get(group_id) or self.consumer_groups.get(group_id)

    def all(self) -> Iterator[AnyGroup]:
        """Every group of the classic and of the consumer protocol."""
        yield from self.groups.values()
        yield from self.consumer_groups.values()

    def __len__(self) -> int:
        return len(self.groups) + len(self.consumer_groups) + len(self.share.groups)

    def knows(self, group_id: str) -> bool:
        """Whether there is a group of that id, of any type."""
        return self._is_taken(group_id) or group_id in self.share

    def turn(self, at: Moment) -> Turn:
        """Begin a decision at the time `at`."""
        return Turn(self.settings, self.timers, at)

    def apply(self, record: CoordinatorRecord) -> None:
        """Apply a record to the state: when it is appended, or replayed."""
        match record:
            case OffsetRecord(group_id, topic_partition, committed):
                if self.pending:
                    self.pending.overtake(group_id, topic_partition)
                holder = self.any(group_id)
                if committed is not None:
                    if holder is None:
                        holder = self.groups[group_id] = Group(group_id)
                    holder.offsets[topic_partition] = committed
                elif holder is not None:
                    holder.offsets.pop(topic_partition, None)
            case GroupRecord(group_id, stored):
                group = self.groups.get(group_id)
                if stored is not None:
                    if group is None:
                        group = self.groups[group_id] = Group(group_id)
                    group.adopt(stored)
                elif group is not None:
                    del self.groups[group_id]
                    self._keep_offsets(group)
            case (
                EpochRecord()
                | MemberRecord()
                | TargetEpochRecord()
                | TargetRecord()
                | CurrentRecord()
            ):
                self._apply_to_consumer_group(record)
            case _:
                self.share.apply(record)

    def apply_pending(self, producer_id: int, record: CoordinatorRecord) -> None:
        """Keep an offset record of a transaction; it takes effect if the transaction commits.

        If there is no group of that id, it is created now, as in Kafka.
        """
        assert isinstance(record, OffsetRecord), "only offsets are committed in transactions"
        if self.any(record.group_id) is None and record.group_id not in self.share:
            self.groups[record.group_id] = Group(record.group_id)
        self.pending.add(producer_id, record)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Act on a marker: commit or drop the producer's pending offsets."""
        for record in self.pending.end(producer_id, is_commit=is_commit):
            group = self.any(record.group_id)
            if group is None:
                group = self.groups[record.group_id] = Group(record.group_id)
            assert record.committed is not None
            group.offsets[record.topic_partition] = record.committed

    def sweep(self) -> None:
        """Drop groups without records and without pending offsets."""
        void = {group_id for group_id, group in self.groups.items() if group.is_void}
        if void and self.pending:
            # Groups with pending offsets stay, unless a share group has their id by now.
            void -= {each for each in self.pending.groups() if each not in self.share}
        for group_id in void:
            del self.groups[group_id]

    def mend(self) -> None:
        """Make all groups consistent again after a loss of records."""
        for group in self.consumer_groups.values():
            group.mend()
        self.share.mend()
        for group_id, consumer_group in self.consumer_groups.items():
            classic = self.groups.pop(group_id, None)
            if classic is not None:
                consumer_group.offsets.update(classic.offsets)
        for group_id in [each for each in self.share.groups if self.any(each) is not None]:
            del self.share.groups[group_id]

    def begin_consumer_group(self, group_id: str) -> ConsumerGroup:
        """Create a group of the consumer protocol, with the offsets committed by its id so far."""
        group = self.consumer_groups[group_id] = ConsumerGroup(group_id)
        classic = self.groups.pop(group_id, None)
        if classic is not None:
            group.offsets = classic.offsets
        return group

    def drop_consumer_group(self, group: ConsumerGroup) -> None:
        """Drop a group that is deleted, or converted to the classic protocol."""
        del self.consumer_groups[group.group_id]
        self._keep_offsets(group)

    def _is_taken(self, group_id: str) -> bool:
        """Whether an id is that of a classic or a consumer group."""
        return self.any(group_id) is not None

    def _apply_to_consumer_group(self, record: ConsumerGroupRecord) -> None:
        group = self.consumer_groups.get(record.group_id)
        if group is None:
            if record.is_tombstone:
                return
            group = self.begin_consumer_group(record.group_id)
        group.apply(record)
        if isinstance(record, EpochRecord) and record.is_tombstone:
            self.drop_consumer_group(group)

    def _keep_offsets(self, group: AnyGroup) -> None:
        """Keep the offsets of a dropped group readable, in a classic group of its id.

        In a compacted topic the records of offsets may outlive those of their group.
        """
        if group.offsets:
            rest = self.groups[group.group_id] = Group(group.group_id)
            rest.offsets = group.offsets
