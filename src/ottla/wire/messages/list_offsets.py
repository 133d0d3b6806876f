"""Messages to look up offsets by timestamp or by leader epoch."""

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Message):
    """An element of `ListOffsetsTopic.partitions`."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
    timestamp: int = int64()


class ListOffsetsTopic(Message):
    """An element of `ListOffsetsRequest.topics`."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+"):
    """ListOffsets (key 2): look up the offset for a timestamp.

    Timestamp -1 means the end of the log, -2 the log start offset, -3 (from version 7, KIP-734) the
    record with the largest timestamp; -4, -5 and -6 (from versions 8, 9 and 11) are for tiered
    storage. Version 2 adds the isolation level, 4 adds leader epochs, 6 is flexible, 10 adds a
    timeout (KIP-1075).
    """

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+", ignorable=True)


class ListOffsetsPartitionResponse(Message):
    """An element of `ListOffsetsTopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


class ListOffsetsTopicResponse(Message):
    """An element of `ListOffsetsResponse.topics`."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    """A ListOffsets response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)


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
    """OffsetForLeaderEpoch (key 23): return the end offset of a leader epoch (KIP-101, KIP-320).

    Followers and clients use it to detect that the log was truncated. Version 3 adds the replica id
    of the sender (-2 is a consumer that may see beyond the high watermark), 4 is flexible.
    """

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
