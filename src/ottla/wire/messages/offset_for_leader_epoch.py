"""OffsetForLeaderEpoch (key 23): where a leader epoch ends (KIP-101, KIP-320).

Followers and clients detect by it that the end of the log was truncated. Version 3 adds the replica
id of the sender (-2: a consumer that may see beyond the high watermark), 4 is flexible.
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class OffsetForLeaderPartition(Message):
    """An element of `OffsetForLeaderTopic.partitions`."""

    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    leader_epoch: int = int32()


class OffsetForLeaderTopic(Message):
    """An element of `OffsetForLeaderEpochRequest.topics`."""

    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="2-4", flexible="4+"):
    """An OffsetForLeaderEpoch request."""

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class EpochEndOffset(Message):
    """An element of `OffsetForLeaderTopicResult.partitions`."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1, ignorable=True)
    end_offset: int = int64(default=-1)


class OffsetForLeaderTopicResult(Message):
    """An element of `OffsetForLeaderEpochResponse.topics`."""

    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible="4+"):
    """An OffsetForLeaderEpoch response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
