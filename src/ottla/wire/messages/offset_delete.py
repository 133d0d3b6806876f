"""OffsetDelete (key 47): delete offsets of topics that no member subscribes to (KIP-496)."""

from ottla.wire.notation import Message, array, int16, int32, string


class OffsetDeleteRequestPartition(Message):
    """An element of `OffsetDeleteRequestTopic.partitions`."""

    partition_index: int = int32()


class OffsetDeleteRequestTopic(Message):
    """An element of `OffsetDeleteRequest.topics`."""

    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(Message, api_key=47, versions="0"):
    """An OffsetDelete request."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponsePartition(Message):
    """An element of `OffsetDeleteResponseTopic.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetDeleteResponseTopic(Message):
    """An element of `OffsetDeleteResponse.topics`."""

    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


class OffsetDeleteResponse(Message, api_key=47, versions="0"):
    """An OffsetDelete response."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
