"""Records of share groups (KIP-932) in `__consumer_offsets`.

The version of a key is its type: 10 is a member, 11 a group, 12 the metadata of a group's target
assignment, 13 the target assignment of one member, 14 the current assignment of a member, 15 the
list of partitions for which the group has state.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, versions="10"):
    """The key of a member."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """A member's identity and subscription."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataKey(Message, versions="11"):
    """The key of a group."""

    group_id: str = string()


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    """A group's epoch, and a hash of the subscribed topics for which it was increased."""

    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupTargetAssignmentMetadataKey(Message, versions="12"):
    """The key of a group's target assignment."""

    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """The group epoch for which the target assignment was computed."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, versions="13"):
    """The key of a member's target assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartition(Message):
    """An element of `ShareGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    """The target assignment of a member."""

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentKey(Message, versions="14"):
    """The key of a member's current assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Message):
    """An element of `ShareGroupCurrentMemberAssignmentValue.assigned_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """The current assignment of a member."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataKey(Message, versions="15"):
    """The key of the list of partitions for which the group has state."""

    group_id: str = string()


class TopicPartitionsInfo(Message):
    """An element of the lists in `ShareGroupStatePartitionMetadataValue`."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class TopicInfo(Message):
    """An element of `ShareGroupStatePartitionMetadataValue.deleting_topics`."""

    topic_id: UUID = uuid()
    topic_name: str = string()


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    """The partitions whose state is being initialized, is initialized, or is being deleted."""

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
