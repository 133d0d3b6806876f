"""ShareGroupDescribe (key 77): share groups and their members (KIP-932).

Always flexible. Version 0 was an early form that Kafka removed.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int16, int32, string, struct, uuid


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible="0+"):
    """A ShareGroupDescribe request."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class TopicPartitions(Message):
    """An element of `Assignment.topic_partitions`."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class Assignment(Message):
    """The struct in `Member.assignment`."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Message):
    """An element of `DescribedGroup.members`."""

    member_id: str = string()
    rack_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: Assignment = struct(Assignment)


class DescribedGroup(Message):
    """An element of `ShareGroupDescribeResponse.groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible="0+"):
    """A ShareGroupDescribe response."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
