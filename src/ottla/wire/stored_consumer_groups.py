"""Records of groups of the consumer protocol (KIP-848) in `__consumer_offsets`.

The version of a key is its type: 3 is a group, 5 a member, 6 the metadata of a group's target
assignment, 7 the target assignment of one member, 8 the current assignment of a member.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, binary, int8, int32, int64, string, struct, uuid


class ConsumerGroupMetadataKey(Message, versions="3"):
    """The key of a group."""

    group_id: str = string()


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    """A group's epoch, and a hash of the subscribed topics for which it was increased."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class ConsumerGroupMemberMetadataKey(Message, versions="5"):
    """The key of a member."""

    group_id: str = string()
    member_id: str = string()


class ClassicProtocol(Message):
    """An element of `ClassicMemberMetadata.supported_protocols`."""

    name: str = string()
    metadata: bytes = binary()


class ClassicMemberMetadata(Message):
    """The struct in `ConsumerGroupMemberMetadataValue.classic_member_metadata`."""

    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """A member's identity and subscription."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        ClassicMemberMetadata, tag=0, nullable="0+"
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="6"):
    """The key of a group's target assignment."""

    group_id: str = string()


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """The group epoch for which the target assignment was computed."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="7"):
    """The key of a member's target assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartition(Message):
    """An element of `ConsumerGroupTargetAssignmentMemberValue.topic_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    """The target assignment of a member."""

    topic_partitions: list[TopicPartition] = array(TopicPartition)


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="8"):
    """The key of a member's current assignment."""

    group_id: str = string()
    member_id: str = string()


class TopicPartitions(Message):
    """An element of the lists in `ConsumerGroupCurrentMemberAssignmentValue`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, tag=0, nullable="0+")


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """The current assignment of a member, and the partitions that it must revoke."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    partitions_pending_revocation: list[TopicPartitions] = array(TopicPartitions)
