"""DeleteShareGroupState (key 86): delete the state of share partitions (KIP-932).

Between brokers, always flexible.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, string, uuid


class PartitionData(Message):
    """An element of `DeleteStateData.partitions`."""

    partition: int = int32()


class DeleteStateData(Message):
    """An element of `DeleteShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible="0+"):
    """A DeleteShareGroupState request."""

    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


class PartitionResult(Message):
    """An element of `DeleteStateResult.partitions`."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class DeleteStateResult(Message):
    """An element of `DeleteShareGroupStateResponse.results`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    """A DeleteShareGroupState response."""

    results: list[DeleteStateResult] = array(DeleteStateResult)
