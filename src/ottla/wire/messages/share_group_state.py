"""Messages by which brokers read and write the state of share partitions at its coordinator."""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string, uuid


class InitializePartitionData(Message):
    """An element of `InitializeStateData.partitions`."""

    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


class InitializeStateData(Message):
    """An element of `InitializeShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[InitializePartitionData] = array(InitializePartitionData)


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+"):
    """InitializeShareGroupState (key 83): initialize or reset share partitions (KIP-932).

    Between brokers, always flexible.
    """

    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


class PartitionResult(Message):
    """An element of `StateResult.partitions`."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class StateResult(Message):
    """An element of `results` in responses that initialize, write or delete state."""

    topic_id: UUID = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    """An InitializeShareGroupState response."""

    results: list[StateResult] = array(StateResult)


class ReadPartitionData(Message):
    """An element of `ReadStateData.partitions`."""

    partition: int = int32()
    leader_epoch: int = int32()


class ReadStateData(Message):
    """An element of `ReadShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[ReadPartitionData] = array(ReadPartitionData)


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+"):
    """ReadShareGroupState (key 84): read the state of share partitions (KIP-932).

    Between brokers, always flexible.
    """

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


class StateBatch(Message):
    """An element of `ReadPartitionResult.state_batches`."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class ReadPartitionResult(Message):
    """An element of `ReadStateResult.partitions`."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    state_epoch: int = int32()
    start_offset: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


class ReadStateResult(Message):
    """An element of `ReadShareGroupStateResponse.results`."""

    topic_id: UUID = uuid()
    partitions: list[ReadPartitionResult] = array(ReadPartitionResult)


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    """A ReadShareGroupState response."""

    results: list[ReadStateResult] = array(ReadStateResult)


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions="0-1", flexible="0+"):
    """ReadShareGroupStateSummary (key 87): read the start offsets of share partitions (KIP-932).

    Between brokers, always flexible. Version 1 adds the delivery complete count (KIP-1226).
    """

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


class SummaryPartitionResult(Message):
    """An element of `ReadStateSummaryResult.partitions`."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Message):
    """An element of `ReadShareGroupStateSummaryResponse.results`."""

    topic_id: UUID = uuid()
    partitions: list[SummaryPartitionResult] = array(SummaryPartitionResult)


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1", flexible="0+"):
    """A ReadShareGroupStateSummary response."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)


class WritePartitionData(Message):
    """An element of `WriteStateData.partitions`."""

    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch)


class WriteStateData(Message):
    """An element of `WriteShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[WritePartitionData] = array(WritePartitionData)


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible="0+"):
    """WriteShareGroupState (key 85): store changes to the state of share partitions (KIP-932).

    Between brokers, always flexible. Version 1 adds the delivery complete count (KIP-1226).
    """

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    """A WriteShareGroupState response."""

    results: list[StateResult] = array(StateResult)


class DeletePartitionData(Message):
    """An element of `DeleteStateData.partitions`."""

    partition: int = int32()


class DeleteStateData(Message):
    """An element of `DeleteShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[DeletePartitionData] = array(DeletePartitionData)


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible="0+"):
    """DeleteShareGroupState (key 86): delete the state of share partitions (KIP-932).

    Between brokers, always flexible.
    """

    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    """A DeleteShareGroupState response."""

    results: list[StateResult] = array(StateResult)
