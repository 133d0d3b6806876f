"""Produce (key 0): append record batches.

As in Kafka, versions 0-2 are advertised but refused, because librdkafka derives the usable
compression codecs from them. From version 7 on zstd is allowed (KIP-110), 8 adds an error per
record (KIP-467), 9 is flexible, 10 names the new leader in the answer (KIP-951), 12 implicitly adds
the partition to the transaction (KIP-890), 13 names topics by id (KIP-516). A request with acks=0
has no answer.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, batches, int16, int32, int64, string, struct, uuid
from ottla.wire.parts import Records


class PartitionProduceData(Message):
    """An element of `TopicProduceData.partition_data`."""

    index: int = int32()
    records: Records = batches(nullable="0+")


class TopicProduceData(Message):
    """An element of `ProduceRequest.topic_data`."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+"):
    """A Produce request."""

    transactional_id: str | None = string("3+", nullable="3+")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Message):
    """An element of `PartitionProduceResponse.record_errors`."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+")


class LeaderIdAndEpoch(Message):
    """The struct in `PartitionProduceResponse.current_leader`."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


class PartitionProduceResponse(Message):
    """An element of `TopicProduceResponse.partition_responses`."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Message):
    """An element of `ProduceResponse.responses`."""

    name: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Message):
    """An element of `ProduceResponse.node_endpoints`."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+")


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    """A Produce response."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
