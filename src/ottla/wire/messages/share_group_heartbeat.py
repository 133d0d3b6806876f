"""ShareGroupHeartbeat (key 76): join a share group and stay in it (KIP-932).

Always flexible. Version 0 was an early form that Kafka removed.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, string, struct, uuid


class ShareGroupHeartbeatRequest(Message, api_key=76, versions="1", flexible="0+"):
    """A ShareGroupHeartbeat request."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable="0+")
    subscribed_topic_names: list[str] | None = array(string, nullable="0+")


class TopicPartitions(Message):
    """An element of `Assignment.topic_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class Assignment(Message):
    """The struct in `ShareGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1", flexible="0+"):
    """A ShareGroupHeartbeat response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+")
