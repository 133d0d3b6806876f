"""DeleteRecords (21), versions 0-2: raises the log start offset.

Older segments are deleted (KIP-107). The answer is sent when the new start is on the leader's disk
(otherwise a killed broker would serve the records again), and the live replicas have raised theirs,
or at the timeout. It contains the lowest start of the replicas.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.audit.details import partition_changes
from ottla.broker.partitions.delayed_delete_records import (
    DelayedDeleteRecords,
    Waiting,
    low_watermark,
)
from ottla.broker.partitions.own_flush import until_flushed
from ottla.broker.partitions.own_registration import OwnRegistration
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each, named
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.security.names import AclOperation, AclResource
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import StorageError
from ottla.wire.messages.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

# Requests deletion of everything below the high watermark.
_HIGH_WATERMARK = -1


@dataclass(slots=True, eq=False, repr=False)
class _Outcome:
    """The outcome for one partition of a request."""

    index: int
    partition: Partition | None = None
    start: int = -1
    code: ErrorCode = ErrorCode.NONE


def _changes(body: DeleteRecordsRequest, response: DeleteRecordsResponse) -> Iterator[AdminChange]:
    """Return an audit line for each topic; -1 stands for the high watermark."""
    return partition_changes(
        lambda name: topic_need(AclOperation.DELETE, name),
        (
            (one.name, part.partition_index, part.offset)
            for one in body.topics
            for part in one.partitions
        ),
        (
            (one.name, part.partition_index, part.error_code)
            for one in response.topics
            for part in one.partitions
        ),
        "before_offsets",
    )


@dataclass(slots=True, eq=False, repr=False)
class DeleteRecords(Handler):
    """Serves DeleteRecords."""

    api = Api(
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        Versions(0, 2),
        needs=each(
            lambda body: body.topics,
            lambda response: response.topics,
            named(AclOperation.DELETE, AclResource.TOPIC, lambda topic: topic.name),
        ),
        changes=_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
    )

    view: ClusterView
    runtime: Runtime
    partitions: Partitions
    own: OwnRegistration
    directories: LogDirectories

    def handle(self, request: RequestContext, body: DeleteRecordsRequest) -> None:
        """Raise the log start offset of each partition."""
        self.runtime.spawn(self._serve(request, body))

    async def _serve(self, request: RequestContext, body: DeleteRecordsRequest) -> None:
        # A client may delete records that were acknowledged with acks=1 before the flush.
        await until_flushed(self._wanted(body), self.runtime.purgatory)
        outcomes = [
            [self._move(topic.name, one.partition_index, one.offset) for one in topic.partitions]
            for topic in body.topics
        ]
        await self._write_starts([one for some in outcomes for one in some])
        waiting: Waiting = []
        response = DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[self._answer(outcome, waiting) for outcome in some],
                )
                for topic, some in zip(body.topics, outcomes, strict=True)
            ]
        )
        if waiting:
            waits = DelayedDeleteRecords(self.runtime, self.own, request, response, waiting)
            waits.start(body.timeout_ms)
        else:
            request.reply(response)

    def _wanted(self, body: DeleteRecordsRequest) -> Iterator[Partition]:
        for topic in body.topics:
            for one in topic.partitions:
                partition = self.partitions.find(topic.name, one.partition_index)
                if partition is not None:
                    yield partition

    def _move(self, topic: str, index: int, offset: int) -> _Outcome:
        """Raise the start of one log in memory."""
        try:
            if topic in INTERNAL_TOPICS and self.view.image.partition(topic, index) is not None:
                raise OttlaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} belong to the broker"
                )
            partition = self.partitions.get(topic, index)
            return _Outcome(index, partition, _move_start(partition, offset))
        except OttlaError as error:
            return _Outcome(index, code=error.code)

    async def _write_starts(self, outcomes: list[_Outcome]) -> None:
        """Write the checkpoints of the directories whose logs have new start offsets."""
        homes: dict[LogDirectory, list[_Outcome]] = {}
        for one in outcomes:
            if one.partition is not None:
                home = self.directories.home(one.partition.topic_partition)
                if home is not None:
                    homes.setdefault(home, []).append(one)
        for home, moved in homes.items():
            job = home.prepare_checkpoints({})
            try:
                if home.filesystem.in_memory:
                    job.run()
                else:
                    await self.runtime.in_thread(job.run)
            except StorageError as error:
                for one in moved:
                    assert one.partition is not None
                    self.partitions.on_storage_error(one.partition, error)
                    one.code = ErrorCode.KAFKA_STORAGE_ERROR

    def _answer(self, outcome: _Outcome, waiting: Waiting) -> DeleteRecordsPartitionResult:
        """Return the partition's answer.

        It is also added to `waiting` if it waits for followers.
        """
        partition = outcome.partition
        if partition is None or outcome.code != ErrorCode.NONE:
            return _failed(outcome.index, outcome.code)
        if partition.leader is None:
            return _failed(outcome.index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        least = low_watermark(self.own, partition)
        answer = DeleteRecordsPartitionResult(partition_index=outcome.index, low_watermark=least)
        if least < outcome.start:
            waiting.append((partition, outcome.start, answer))
        return answer

    @staticmethod
    def on_error(
        body: DeleteRecordsRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> DeleteRecordsResponse:
        """Return the same error for every partition."""
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
    """Raise the start to `offset`, unless it is higher already; return the requested start."""
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
