"""TxnOffsetCommit (key 28): commit offsets of a group in a transaction.

Version 2 adds leader epochs, 3 is flexible and adds the member's generation, which fences a zombie
(KIP-447); from 5 on it also adds the group's partition to the transaction (KIP-890).
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Message):
    """An element of `TxnOffsetCommitRequestTopic.partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


class TxnOffsetCommitRequestTopic(Message):
    """An element of `TxnOffsetCommitRequest.topics`."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-5", flexible="3+"):
    """A TxnOffsetCommit request."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponsePartition(Message):
    """An element of `TxnOffsetCommitResponseTopic.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class TxnOffsetCommitResponseTopic(Message):
    """An element of `TxnOffsetCommitResponse.topics`."""

    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-5", flexible="3+"):
    """A TxnOffsetCommit response."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
