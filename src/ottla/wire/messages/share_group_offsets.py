"""Messages to list, set and delete the start offsets of share groups."""

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
    """DescribeShareGroupOffsets (key 90): list the start offsets of share groups (KIP-932).

    Always flexible. Version 1 adds the lag (KIP-1226).
    """

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


class AlterShareGroupOffsetsRequestPartition(Message):
    """An element of `AlterShareGroupOffsetsRequestTopic.partitions`."""

    partition_index: int = int32()
    start_offset: int = int64()


class AlterShareGroupOffsetsRequestTopic(Message):
    """An element of `AlterShareGroupOffsetsRequest.topics`."""

    topic_name: str = string()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(
        AlterShareGroupOffsetsRequestPartition
    )


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", flexible="0+"):
    """AlterShareGroupOffsets (key 91): change the start offsets of an empty share group (KIP-932).

    Always flexible.
    """

    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponsePartition(Message):
    """An element of `AlterShareGroupOffsetsResponseTopic.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class AlterShareGroupOffsetsResponseTopic(Message):
    """An element of `AlterShareGroupOffsetsResponse.responses`."""

    topic_name: str = string()
    topic_id: UUID = uuid()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(
        AlterShareGroupOffsetsResponsePartition
    )


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible="0+"):
    """An AlterShareGroupOffsets response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(
        AlterShareGroupOffsetsResponseTopic
    )


class DeleteShareGroupOffsetsRequestTopic(Message):
    """An element of `DeleteShareGroupOffsetsRequest.topics`."""

    topic_name: str = string()


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible="0+"):
    """DeleteShareGroupOffsets (key 92): delete the offsets of an empty share group (KIP-932).

    Always flexible.
    """

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponseTopic(Message):
    """An element of `DeleteShareGroupOffsetsResponse.responses`."""

    topic_name: str = string()
    topic_id: UUID = uuid()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible="0+"):
    """A DeleteShareGroupOffsets response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic
    )
