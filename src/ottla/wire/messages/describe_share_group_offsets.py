"""DescribeShareGroupOffsets (key 90): the start offsets of share groups (KIP-932).

Always flexible. Version 1 adds the lag (KIP-1226).
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Message):
    """An element of `DescribeShareGroupOffsetsRequestGroup.topics`."""

    topic_name: str = string()
    partitions: list[int] = array(int32)


class DescribeShareGroupOffsetsRequestGroup(Message):
    """An element of `DescribeShareGroupOffsetsRequest.groups`."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", flexible="0+"):
    """A DescribeShareGroupOffsets request."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(
        DescribeShareGroupOffsetsRequestGroup
    )


class DescribeShareGroupOffsetsResponsePartition(Message):
    """An element of `DescribeShareGroupOffsetsResponseTopic.partitions`."""

    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64("1+", default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class DescribeShareGroupOffsetsResponseTopic(Message):
    """An element of `DescribeShareGroupOffsetsResponseGroup.topics`."""

    topic_name: str = string()
    topic_id: UUID = uuid()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(
        DescribeShareGroupOffsetsResponsePartition
    )


class DescribeShareGroupOffsetsResponseGroup(Message):
    """An element of `DescribeShareGroupOffsetsResponse.groups`."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(
        DescribeShareGroupOffsetsResponseTopic
    )
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1", flexible="0+"):
    """A DescribeShareGroupOffsets response."""

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(
        DescribeShareGroupOffsetsResponseGroup
    )
