"""DeleteRecords (21), versions 0-2: moves a log's start; older segments then go (KIP-107).

Answered when the replicas that live have moved theirs, with the least of them, or by the timeout.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.delayed_delete_records import (
    DelayedDeleteRecords,
    Waiting,
    low_watermark,
)
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

# Asks for everything up to the high watermark.
_HIGH_WATERMARK = -1


def handle(
    broker: "Broker", request: RequestContext, body: DeleteRecordsRequest
) -> DeleteRecordsResponse | None:
    """Move the start of each partition's log."""
    waiting: Waiting = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(broker, topic.name, wanted.partition_index, wanted.offset, waiting)
                    for wanted in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
    if not waiting:
        return response
    DelayedDeleteRecords(broker, request, response, waiting).start(body.timeout_ms)
    return None


def on_error(
    body: DeleteRecordsRequest, code: ErrorCode, _message: str | None, _version: int
) -> DeleteRecordsResponse:
    """The same error for every partition."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_failed(wanted.partition_index, code) for wanted in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _delete(
    broker: "Broker", topic: str, index: int, offset: int, waiting: Waiting
) -> DeleteRecordsPartitionResult:
    """The partition's part of the answer; it is among `waiting` where followers are waited for."""
    try:
        if topic in INTERNAL_TOPICS and broker.image.partition(topic, index) is not None:
            raise OttlaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} belong to the broker"
            )
        partition = broker.partitions.get(topic, index)
        start = _move_start(partition, offset)
    except OttlaError as error:
        return _failed(index, error.code)
    least = low_watermark(broker, partition)
    answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=least)
    if least < start:
        waiting.append((partition, start, answer))
    return answer


def _move_start(partition: Partition, offset: int) -> int:
    """Move the start to `offset`, unless it lies beyond; where it is to be now."""
    if "delete" not in partition.config.cleanup_policy:
        raise OttlaError(
            ErrorCode.POLICY_VIOLATION,
            f"{partition.topic} is compacted only: set cleanup.policy=compact,delete first",
        )
    committed = partition.latest_offset()
    if offset == _HIGH_WATERMARK:
        offset = committed
    if not 0 <= offset <= committed:
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition.topic_partition} ends at {committed}, before {offset}",
        )
    if offset > partition.log_start_offset:
        partition.advance_log_start(offset)
    return offset


def _failed(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)


HANDLER = LegacyHandler(ApiKey.DELETE_RECORDS, 0, 2, handle)
