"""InitializeShareGroupState (key 83): initialize or reset the state of share partitions (KIP-932).

Between brokers, always flexible.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


class PartitionData(Message):
    """An element of `InitializeStateData.partitions`."""

    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


class InitializeStateData(Message):
    """An element of `InitializeShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+"):
    """An InitializeShareGroupState request."""

    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Message):
    """An element of `InitializeStateResult.partitions`."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class InitializeStateResult(Message):
    """An element of `InitializeShareGroupStateResponse.results`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    """An InitializeShareGroupState response."""

    results: list[InitializeStateResult] = array(InitializeStateResult)
