"""DescribeTopicPartitions (key 75): topics page by page, with eligible leader replicas (KIP-966).

Always flexible. The next request starts at the cursor of the answer, which is null at the end.

Some parts of request and response have the same name; here those of the response end in `Response`:
CursorResponse.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int16, int32, string, struct, uuid


class TopicRequest(Message):
    """An element of `DescribeTopicPartitionsRequest.topics`."""

    name: str = string()


class Cursor(Message):
    """The struct in `DescribeTopicPartitionsRequest.cursor`."""

    topic_name: str = string()
    partition_index: int = int32()


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible="0+"):
    """A DescribeTopicPartitions request."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = struct(Cursor, nullable="0+")


class DescribeTopicPartitionsResponsePartition(Message):
    """An element of `DescribeTopicPartitionsResponseTopic.partitions`."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    eligible_leader_replicas: list[int] | None = array(int32, nullable="0+")
    last_known_elr: list[int] | None = array(int32, nullable="0+")
    offline_replicas: list[int] = array(int32, ignorable=True)


class DescribeTopicPartitionsResponseTopic(Message):
    """An element of `DescribeTopicPartitionsResponse.topics`."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: UUID = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(default=-2147483648)


class CursorResponse(Message):
    """The struct in `DescribeTopicPartitionsResponse.next_cursor`."""

    topic_name: str = string()
    partition_index: int = int32()


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    """A DescribeTopicPartitions response."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: CursorResponse | None = struct(CursorResponse, nullable="0+")
