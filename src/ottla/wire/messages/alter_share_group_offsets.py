"""AlterShareGroupOffsets (key 91): change the start offsets of an empty share group (KIP-932).

Always flexible.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


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
    """An AlterShareGroupOffsets request."""

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
