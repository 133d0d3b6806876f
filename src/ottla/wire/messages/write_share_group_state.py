"""WriteShareGroupState (key 85): store changes to the state of share partitions (KIP-932).

Between brokers, always flexible. Version 1 adds the delivery complete count (KIP-1226).
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string, uuid


class StateBatch(Message):
    """An element of `PartitionData.state_batches`."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class PartitionData(Message):
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
    partitions: list[PartitionData] = array(PartitionData)


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible="0+"):
    """A WriteShareGroupState request."""

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


class PartitionResult(Message):
    """An element of `WriteStateResult.partitions`."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class WriteStateResult(Message):
    """An element of `WriteShareGroupStateResponse.results`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    """A WriteShareGroupState response."""

    results: list[WriteStateResult] = array(WriteStateResult)
