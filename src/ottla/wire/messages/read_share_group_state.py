"""ReadShareGroupState (key 84): the state of share partitions (KIP-932).

Between brokers, always flexible.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string, uuid


class PartitionData(Message):
    """An element of `ReadStateData.partitions`."""

    partition: int = int32()
    leader_epoch: int = int32()


class ReadStateData(Message):
    """An element of `ReadShareGroupStateRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+"):
    """A ReadShareGroupState request."""

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


class StateBatch(Message):
    """An element of `PartitionResult.state_batches`."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class PartitionResult(Message):
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
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    """A ReadShareGroupState response."""

    results: list[ReadStateResult] = array(ReadStateResult)
