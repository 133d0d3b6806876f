"""DeleteTopics (key 20): delete topics by name or id.

Version 4 is flexible, 5 adds an error message and may be throttled (KIP-599), 6 names topics by
name or id in a separate field (KIP-516).
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, string, uuid


class DeleteTopicState(Message):
    """An element of `DeleteTopicsRequest.topics`."""

    name: str | None = string("6+", nullable="6+")
    topic_id: UUID = uuid("6+")


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+"):
    """A DeleteTopics request."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()


class DeletableTopicResult(Message):
    """An element of `DeleteTopicsResponse.responses`."""

    name: str | None = string(nullable="6+")
    topic_id: UUID = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    """A DeleteTopics response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
