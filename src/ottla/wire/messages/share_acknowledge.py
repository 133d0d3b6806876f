"""ShareAcknowledge (key 79): accept, release or reject acquired records (KIP-932).

Always flexible. Version 2 can renew their locks (KIP-1222). Version 0 was an early form that Kafka
removed.
"""

from uuid import UUID

from ottla.wire.notation import (
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class AcknowledgementBatch(Message):
    """An element of `AcknowledgePartition.acknowledgement_batches`."""

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(int8)


class AcknowledgePartition(Message):
    """An element of `AcknowledgeTopic.partitions`."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


class AcknowledgeTopic(Message):
    """An element of `ShareAcknowledgeRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible="0+"):
    """A ShareAcknowledge request."""

    group_id: str | None = string(nullable="0+")
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = boolean("2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


class LeaderIdAndEpoch(Message):
    """The struct in `PartitionData.current_leader`."""

    leader_id: int = int32()
    leader_epoch: int = int32()


class PartitionData(Message):
    """An element of `ShareAcknowledgeTopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Message):
    """An element of `ShareAcknowledgeResponse.responses`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Message):
    """An element of `ShareAcknowledgeResponse.node_endpoints`."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+")


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible="0+"):
    """A ShareAcknowledge response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
