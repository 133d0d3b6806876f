"""OffsetCommit (key 8): commit offsets of a group.

Versions 2-4 have a retention time, 6 adds leader epochs, 7 adds static members (KIP-345), 8 is
flexible, 9 adds the member epoch of the consumer protocol (KIP-848), 10 names topics by id.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Message):
    """An element of `OffsetCommitRequestTopic.partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


class OffsetCommitRequestTopic(Message):
    """An element of `OffsetCommitRequest.topics`."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+"):
    """An OffsetCommit request."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+")
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Message):
    """An element of `OffsetCommitResponseTopic.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Message):
    """An element of `OffsetCommitResponse.topics`."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    """An OffsetCommit response."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
