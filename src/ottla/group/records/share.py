"""The records of share groups, as values and as Kafka's bytes."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from ottla.group.records.assignment import (
    AssignmentRecord,
    GroupEpoch,
    OfMember,
    TargetEpoch,
    TargetShare,
)
from ottla.group.values.topics import Share, share_of, topics_of
from ottla.wire.stored_share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)

# A member of a share group always has its target assignment.
_STABLE = 0


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata:
    """A member's identity and subscription."""

    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShareCurrent:
    """A member's assignment in its epoch."""

    epoch: int
    previous_epoch: int
    assigned: Share


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic, and its partitions with share state for the group."""

    id: UUID
    name: str
    partitions: frozenset[int]


class ShareMemberRecord(OfMember[ShareMemberMetadata]):
    """A member's metadata, or the tombstone."""

    __slots__ = ()
    key_type = ShareGroupMemberMetadataKey
    value_type = ShareGroupMemberMetadataValue

    def to_value(self) -> ShareGroupMemberMetadataValue:
        assert self.content is not None
        return ShareGroupMemberMetadataValue(
            rack_id=self.content.rack_id,
            client_id=self.content.client_id,
            client_host=self.content.client_host,
            subscribed_topic_names=list(self.content.topic_names),
        )

    @classmethod
    def read(cls, stored: ShareGroupMemberMetadataValue) -> tuple[ShareMemberMetadata]:
        names = tuple(stored.subscribed_topic_names)
        return (ShareMemberMetadata(stored.rack_id, stored.client_id, stored.client_host, names),)


class ShareEpochRecord(GroupEpoch):
    """A group's epoch and its hash of the subscribed topics; or the tombstone."""

    __slots__ = ()
    key_type = ShareGroupMetadataKey
    value_type = ShareGroupMetadataValue


class ShareTargetEpochRecord(TargetEpoch):
    """The group epoch of the target assignment, or the tombstone."""

    __slots__ = ()
    key_type = ShareGroupTargetAssignmentMetadataKey
    value_type = ShareGroupTargetAssignmentMetadataValue


class ShareTargetRecord(TargetShare):
    """A member's part of the target assignment, or the tombstone."""

    __slots__ = ()
    key_type = ShareGroupTargetAssignmentMemberKey
    value_type = ShareGroupTargetAssignmentMemberValue
    entry_type = TopicPartition


class ShareCurrentRecord(OfMember[ShareCurrent]):
    """A member's current assignment, or the tombstone."""

    __slots__ = ()
    key_type = ShareGroupCurrentMemberAssignmentKey
    value_type = ShareGroupCurrentMemberAssignmentValue

    def to_value(self) -> ShareGroupCurrentMemberAssignmentValue:
        assert self.content is not None
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.content.epoch,
            previous_member_epoch=self.content.previous_epoch,
            state=_STABLE,
            assigned_partitions=topics_of(self.content.assigned, TopicPartitions),
        )

    @classmethod
    def read(cls, stored: ShareGroupCurrentMemberAssignmentValue) -> tuple[ShareCurrent]:
        assigned = share_of(stored.assigned_partitions)
        return (ShareCurrent(stored.member_epoch, stored.previous_member_epoch, assigned),)


@dataclass(frozen=True, slots=True)
class ShareStateRecord(AssignmentRecord):
    """The topics with initialized state and those whose state is being deleted, or the tombstone.

    `begun` is None in a tombstone.
    """

    group_id: str
    begun: tuple[TopicState, ...] | None
    deleting: tuple[TopicState, ...] = ()

    key_type = ShareGroupStatePartitionMetadataKey
    value_type = ShareGroupStatePartitionMetadataValue

    @property
    def is_tombstone(self) -> bool:
        return self.begun is None

    def to_value(self) -> ShareGroupStatePartitionMetadataValue:
        return ShareGroupStatePartitionMetadataValue(
            initialized_topics=_infos(self.begun or ()),
            # Kafka's DeletingTopics has no partitions, so they are stored in InitializingTopics,
            # which Kafka does not evaluate for a topic that is being deleted.
            initializing_topics=_infos(self.deleting),
            deleting_topics=[
                TopicInfo(topic_id=topic.id, topic_name=topic.name) for topic in self.deleting
            ],
        )

    @classmethod
    def read(
        cls, stored: ShareGroupStatePartitionMetadataValue
    ) -> tuple[tuple[TopicState, ...], tuple[TopicState, ...]]:
        partitions = {each.topic_id: each.partitions for each in stored.initializing_topics}
        begun = tuple(
            TopicState(each.topic_id, each.topic_name, frozenset(each.partitions))
            for each in stored.initialized_topics
        )
        deleting = tuple(
            TopicState(each.topic_id, each.topic_name, frozenset(partitions.get(each.topic_id, ())))
            for each in stored.deleting_topics
        )
        return begun, deleting


ShareGroupRecord = (
    ShareMemberRecord
    | ShareEpochRecord
    | ShareTargetEpochRecord
    | ShareTargetRecord
    | ShareCurrentRecord
    | ShareStateRecord
)


def _infos(topics: Iterable[TopicState]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic.id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic in topics
    ]
