"""ReadShareGroupStateSummary (key 87): the start offsets of share partitions (KIP-932).

Between brokers, always flexible. Version 1 adds the delivery complete count (KIP-1226).
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


class PartitionData(Message):
    """An element of `ReadStateSummaryData.partitions`."""

    partition: int = int32()
    leader_epoch: int = int32()


class ReadStateSummaryData(Message):
    """An element of `ReadShareGroupStateSummaryRequest.topics`."""

    topic_id: UUID = uuid()
    partitions: list[PartitionData] = array(PartitionData)


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions="0-1", flexible="0+"):
    """A ReadShareGroupStateSummary request."""

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


class PartitionResult(Message):
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
    partitions: list[PartitionResult] = array(PartitionResult)


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1", flexible="0+"):
    """A ReadShareGroupStateSummary response."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
