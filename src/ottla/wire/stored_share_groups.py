"""Records of share groups (KIP-932) in `__consumer_offsets`.

The version of a key is its type: 10 a member, 11 a group, 12 a group's target assignment and
13 one member's share of it, 14 what a member has now, 15 of which partitions the group has state.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int32, int64, string, uuid


class ShareGroupMemberMetadataKey(Message, versions="10"):
    """Key of a member."""

    group_id: str = string()
    member_id: str = string()


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """A member's identity and subscription."""

    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)


class ShareGroupMetadataKey(Message, versions="11"):
    """Key of a group."""

    group_id: str = string()


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    """A group's epoch, and a hash of the topics it was raised for."""

    epoch: int = int32()
    metadata_hash: int = int64()


class ShareGroupTargetAssignmentMetadataKey(Message, versions="12"):
    """Key of a group's target assignment."""

    group_id: str = string()


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """The group epoch that the target assignment was made for."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, versions="13"):
    """Key of a member's share of the target assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartition(Message):
    """An element of `ShareGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    """What a member shall have."""

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ShareGroupCurrentMemberAssignmentKey(Message, versions="14"):
    """Key of what a member has."""

    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Message):
    """An element of `ShareGroupCurrentMemberAssignmentValue.assigned_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """What a member has."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupStatePartitionMetadataKey(Message, versions="15"):
    """Key of the list of partitions that the group has state of."""

    group_id: str = string()


class TopicPartitionsInfo(Message):
    """What the lists of `ShareGroupStatePartitionMetadataValue` hold."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class TopicInfo(Message):
    """An element of `ShareGroupStatePartitionMetadataValue.deleting_topics`."""

    topic_id: UUID = uuid()
    topic_name: str = string()


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    """Of which partitions state is being begun, is there, and is being deleted."""

    initializing_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    initialized_topics: list[TopicPartitionsInfo] = array(TopicPartitionsInfo)
    deleting_topics: list[TopicInfo] = array(TopicInfo)
