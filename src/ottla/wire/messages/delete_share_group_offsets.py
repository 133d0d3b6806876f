"""DeleteShareGroupOffsets (key 92): delete the offsets of an empty share group (KIP-932).

Always flexible.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Message):
    """An element of `DeleteShareGroupOffsetsRequest.topics`."""

    topic_name: str = string()


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible="0+"):
    """A DeleteShareGroupOffsets request."""

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
