"""DeleteRecords (21), versions 0-2: moves a log's start; older segments then go (KIP-107).

Answered when the live replicas have moved theirs, with the least start, or by the timeout.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.delayed_delete_records import (
    DelayedDeleteRecords,
    Waiting,
    low_watermark,
)
from ottla.broker.partitions.own_standing import OwnStanding
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

# Asks for everything up to the high watermark.
_HIGH_WATERMARK = -1


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecords(Handler):
    """Serves DeleteRecords."""

    api = ApiKey.DELETE_RECORDS
    versions = Versions(0, 2)

    view: ClusterView
    runtime: Runtime
    partitions: Partitions
    own: OwnStanding

    def handle(
        self, request: RequestContext, body: DeleteRecordsRequest
    ) -> DeleteRecordsResponse | None:
        """Move the start of each partition's log."""
        waiting: Waiting = []
        response = DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        self._delete(topic.name, wanted.partition_index, wanted.offset, waiting)
                        for wanted in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )
        if not waiting:
            return response
        waits = DelayedDeleteRecords(self.runtime, self.own, request, response, waiting)
        waits.start(body.timeout_ms)
        return None

    def _delete(
        self, topic: str, index: int, offset: int, waiting: Waiting
    ) -> DeleteRecordsPartitionResult:
        """The partition's part of the answer; also in `waiting` where it waits for followers."""
        try:
            if topic in INTERNAL_TOPICS and self.view.image.partition(topic, index) is not None:
                raise OttlaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} belong to the broker"
                )
            partition = self.partitions.get(topic, index)
            start = _move_start(partition, offset)
        except OttlaError as error:
            return _failed(index, error.code)
        least = low_watermark(self.own, partition)
        answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=least)
        if least < start:
            waiting.append((partition, start, answer))
        return answer

    @staticmethod
    def on_error(
        body: DeleteRecordsRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> DeleteRecordsResponse:
        """The same error for every partition."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        _failed(wanted.partition_index, code) for wanted in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )


def _move_start(partition: Partition, offset: int) -> int:
    """Move the start to `offset`, unless it is beyond already; the wanted start."""
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
