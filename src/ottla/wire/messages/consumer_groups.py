"""Heartbeats and descriptions of groups of the consumer protocol and of share groups."""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string, struct, uuid


class TopicPartitions(Message):
    """Partitions of a topic that a member owns or is assigned."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible="0+"):
    """ConsumerGroupHeartbeat (key 68): join, get assignments and leave by one request (KIP-848).

    Always flexible. A null field means unchanged. With member epoch 0 a member joins, with -1 it
    leaves, with -2 a static member leaves temporarily. Version 1 adds a topic pattern, and members
    generate their own ids (KIP-1082).
    """

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, nullable="0+")
    subscribed_topic_regex: str | None = string("1+", nullable="1+")
    server_assignor: str | None = string(nullable="0+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")


class Assignment(Message):
    """The struct in `ConsumerGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    """A ConsumerGroupHeartbeat response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+")


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+"):
    """ConsumerGroupDescribe (key 69): describe groups of the consumer protocol (KIP-848).

    Always flexible. Version 1 adds a member's type (KIP-1099).
    """

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class DescribedTopicPartitions(Message):
    """An element of `DescribedAssignment.topic_partitions`."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class DescribedAssignment(Message):
    """The struct in the fields `assignment` and `target_assignment` of a `ConsumerGroupMember`."""

    topic_partitions: list[DescribedTopicPartitions] = array(DescribedTopicPartitions)


class ConsumerGroupMember(Message):
    """An element of `DescribedConsumerGroup.members`."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    assignment: DescribedAssignment = struct(DescribedAssignment)
    target_assignment: DescribedAssignment = struct(DescribedAssignment)
    member_type: int = int8("1+", default=-1, ignorable=True)


class DescribedConsumerGroup(Message):
    """An element of `ConsumerGroupDescribeResponse.groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[ConsumerGroupMember] = array(ConsumerGroupMember)
    authorized_operations: int = int32(default=-2147483648)


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
    """A ConsumerGroupDescribe response."""

    throttle_time_ms: int = int32()
    groups: list[DescribedConsumerGroup] = array(DescribedConsumerGroup)


class ShareGroupHeartbeatRequest(Message, api_key=76, versions="1", flexible="0+"):
    """ShareGroupHeartbeat (key 76): join a share group and stay in it (KIP-932).

    Always flexible. Kafka has removed version 0, an early form.
    """

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable="0+")
    subscribed_topic_names: list[str] | None = array(string, nullable="0+")


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1", flexible="0+"):
    """A ShareGroupHeartbeat response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+")


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible="0+"):
    """ShareGroupDescribe (key 77): describe share groups and their members (KIP-932).

    Always flexible. Kafka has removed version 0, an early form.
    """

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ShareGroupMember(Message):
    """An element of `DescribedShareGroup.members`."""

    member_id: str = string()
    rack_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: DescribedAssignment = struct(DescribedAssignment)


class DescribedShareGroup(Message):
    """An element of `ShareGroupDescribeResponse.groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[ShareGroupMember] = array(ShareGroupMember)
    authorized_operations: int = int32(default=-2147483648)


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible="0+"):
    """A ShareGroupDescribe response."""

    throttle_time_ms: int = int32()
    groups: list[DescribedShareGroup] = array(DescribedShareGroup)
