"""ConsumerGroupDescribe (key 69): groups of the consumer protocol of KIP-848.

Always flexible. Version 1 adds a member's type (KIP-1099).
"""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string, struct, uuid


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible="0+"):
    """A ConsumerGroupDescribe request."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class TopicPartitions(Message):
    """An element of `Assignment.topic_partitions`."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class Assignment(Message):
    """What `Member.assignment` and `Member.target_assignment` hold."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Message):
    """An element of `DescribedGroup.members`."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+")
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    member_type: int = int8("1+", default=-1, ignorable=True)


class DescribedGroup(Message):
    """An element of `ConsumerGroupDescribeResponse.groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible="0+"):
    """A ConsumerGroupDescribe response."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
