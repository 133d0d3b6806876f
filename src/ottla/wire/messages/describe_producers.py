"""DescribeProducers (key 61): the active producers of partitions (KIP-664).

Always flexible.
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class TopicRequest(Message):
    """An element of `DescribeProducersRequest.topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+"):
    """A DescribeProducers request."""

    topics: list[TopicRequest] = array(TopicRequest)


class ProducerState(Message):
    """An element of `PartitionResponse.active_producers`."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


class PartitionResponse(Message):
    """An element of `TopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    active_producers: list[ProducerState] = array(ProducerState)


class TopicResponse(Message):
    """An element of `DescribeProducersResponse.topics`."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    """A DescribeProducers response."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
