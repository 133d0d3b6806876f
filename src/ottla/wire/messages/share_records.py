"""Messages to acquire and acknowledge the records of a share group."""

from uuid import UUID

from ottla.wire.notation import (
    Message,
    array,
    batches,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)
from ottla.wire.parts import Records


class AcknowledgementBatch(Message):
    """An element of `FetchPartition.acknowledgement_batches`."""

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(int8)


class FetchPartition(Message):
    """An element of `FetchTopic.partitions`."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class FetchTopic(Message):
    """An element of `ShareFetchRequest.topics` and of `ShareAcknowledgeRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Message):
    """An element of `ShareFetchRequest.forgotten_topics_data`."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareFetchRequest(Message, api_key=78, versions="1-2", flexible="0+"):
    """ShareFetch (key 78): acquire records of a share group, acknowledge earlier ones (KIP-932).

    Always flexible. Version 2 adds the acquire mode (KIP-1206) and can renew locks (KIP-1222).
    Kafka has removed version 0, an early form.
    """

    group_id: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32("1+")
    batch_size: int = int32("1+")
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = boolean("2+")
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


class LeaderIdAndEpoch(Message):
    """The struct in `PartitionData.current_leader`."""

    leader_id: int = int32()
    leader_epoch: int = int32()


class AcquiredRecords(Message):
    """An element of `PartitionData.acquired_records`."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


class PartitionData(Message):
    """An element of `ShareFetchableTopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(nullable="0+")
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)
    records: Records = batches(nullable="0")
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


class ShareFetchableTopicResponse(Message):
    """An element of `ShareFetchResponse.responses`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Message):
    """An element of `ShareFetchResponse.node_endpoints`."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+")


class ShareFetchResponse(Message, api_key=78, versions="1-2", flexible="0+"):
    """A ShareFetch response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    acquisition_lock_timeout_ms: int = int32("1+")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible="0+"):
    """ShareAcknowledge (key 79): accept, release or reject acquired records (KIP-932).

    Always flexible. Version 2 can renew the locks of records (KIP-1222). Kafka has removed version
    0, an early form.
    """

    group_id: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean("2+")
    topics: list[FetchTopic] = array(FetchTopic)


class AcknowledgePartitionData(Message):
    """An element of `ShareAcknowledgeTopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Message):
    """An element of `ShareAcknowledgeResponse.responses`."""

    topic_id: UUID = uuid()
    partitions: list[AcknowledgePartitionData] = array(AcknowledgePartitionData)


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible="0+"):
    """A ShareAcknowledge response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
