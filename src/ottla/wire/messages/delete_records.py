"""DeleteRecords (key 21): advance the log start offset of partitions (KIP-107).

Offset -1 stands for the high watermark; the answer's low watermark is the new start. Version 2 is
flexible.
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class DeleteRecordsPartition(Message):
    """An element of `DeleteRecordsTopic.partitions`."""

    partition_index: int = int32()
    offset: int = int64()


class DeleteRecordsTopic(Message):
    """An element of `DeleteRecordsRequest.topics`."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    """A DeleteRecords request."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


class DeleteRecordsPartitionResult(Message):
    """An element of `DeleteRecordsTopicResult.partitions`."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


class DeleteRecordsTopicResult(Message):
    """An element of `DeleteRecordsResponse.topics`."""

    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    """A DeleteRecords response."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
