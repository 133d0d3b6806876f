"""CreatePartitions (key 37): add partitions to topics (KIP-195).

Version 2 is flexible, 3 may be throttled (KIP-599).
"""

from ottla.wire.notation import Message, array, boolean, int16, int32, string


class CreatePartitionsAssignment(Message):
    """An element of `CreatePartitionsTopic.assignments`."""

    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Message):
    """An element of `CreatePartitionsRequest.topics`."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable="0+"
    )


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+"):
    """A CreatePartitions request."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Message):
    """An element of `CreatePartitionsResponse.results`."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    """A CreatePartitions response."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
