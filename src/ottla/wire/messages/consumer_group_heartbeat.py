"""ConsumerGroupHeartbeat (key 68): join, assignment and leaving in one (KIP-848).

Always flexible. A null field means unchanged. With member epoch 0 a member joins, with -1 it
leaves, with -2 a static member leaves temporarily. Version 1 adds a topic pattern, and members
generate their own ids (KIP-1082).

Some parts of request and response have the same name; here those of the response end in `Response`:
TopicPartitionsResponse.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, string, struct, uuid


class TopicPartitions(Message):
    """An element of `ConsumerGroupHeartbeatRequest.topic_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible="0+"):
    """A ConsumerGroupHeartbeat request."""

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


class TopicPartitionsResponse(Message):
    """An element of `Assignment.topic_partitions`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class Assignment(Message):
    """The struct in `ConsumerGroupHeartbeatResponse.assignment`."""

    topic_partitions: list[TopicPartitionsResponse] = array(TopicPartitionsResponse)


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible="0+"):
    """A ConsumerGroupHeartbeat response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, nullable="0+")
