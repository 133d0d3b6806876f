"""The handlers that delete topics, and records of topics."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.audit.details import partition_changes
from ottla.broker.partitions.delayed_delete_records import (
    DelayedDeleteRecords,
    Waiting,
    low_watermark,
    until_flushed,
)
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.quotas.quotas import admit
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, each, named
from ottla.broker.requests.portions import Repeated, in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.topics import Topics, patience_ms, unknown_topic
from ottla.broker.undo.changes import author_of
from ottla.metadata.image import INTERNAL_TOPICS, ClusterImage, TopicImage
from ottla.replica.registration import OwnRegistration
from ottla.security.names import AclOperation, AclResource
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import StorageError
from ottla.wire.messages.topics import (
    DeletableTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_QUOTA_ERROR_SINCE = 5


def _needs(
    check: RequestCheck[DeleteTopicsRequest],
) -> Amend[DeleteTopicsResponse] | DeniedAnswer | None:
    """Require DELETE on the cluster or on each topic.

    If a request names a topic by id, its name is not shown to a client without DESCRIBE.
    """
    if check.sees_cluster(AclOperation.DELETE):
        return None
    body = check.body
    refused: list[DeletableTopicResult] = []
    allowed: list[DeleteTopicState] = []
    for asked in _wanted(body):
        by_id = asked.name is None
        name = check.topic_name(asked.topic_id) if asked.name is None else asked.name
        if name is None or check.code(AclOperation.DELETE, AclResource.TOPIC, name) is None:
            allowed.append(asked)
            continue
        seen = check.sees(AclOperation.DESCRIBE, AclResource.TOPIC, name)
        if seen and check.image.topic(name) is None:
            # The handler answers that the topic does not exist, which is no secret.
            allowed.append(asked)
            continue
        refused.append(
            _topics_failed(
                name if seen or not by_id else None,
                asked.topic_id if by_id else NO_TOPIC_ID,
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                None,
            )
        )
    if not refused:
        return None
    if not allowed:
        return DeniedAnswer(DeleteTopicsResponse(responses=refused))
    if body.topics:
        body.topics = allowed
    else:
        body.topic_names = [one.name or "" for one in allowed]
    return lambda response: response.responses.extend(refused)


def _topics_changes(
    _body: DeleteTopicsRequest, response: DeleteTopicsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic; for a missing topic there may be only an id."""
    for one in response.responses:
        need = topic_need(AclOperation.DELETE, one.name or str(one.topic_id))
        yield AdminChange((need,), {"topic_id": str(one.topic_id)}, one.error_code)


def _is_by_id(topic: DeleteTopicState) -> bool:
    """Return whether the request names the topic by id. To name it both ways is refused."""
    return topic.name is None


@dataclass(slots=True, eq=False, repr=False)
class DeleteTopics(Handler):
    """DeleteTopics (20), versions 1-6: deletes topics by name, from 6 on also by id (KIP-516)."""

    api = Api(
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        Versions(1, 6),
        needs=_needs,
        changes=_topics_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.responses,
            lambda topic: (topic.name, topic.topic_id),
            repeated=Repeated.ANSWERED_ONCE,
            alike=_is_by_id,
        )
        + in_portions(
            lambda body: body.topic_names,
            lambda response: response.responses,
            repeated=Repeated.ANSWERED_ONCE,
        ),
    )

    view: ClusterView
    settings: BrokerSettings
    topics: Topics

    async def handle(
        self, request: RequestContext, body: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        """Delete each topic that exists; an error of one does not affect the others."""
        wanted = _wanted(body)
        if not self.settings.flag("delete.topic.enable"):
            # This error code was added with version 3 (KIP-322).
            code = (
                ErrorCode.TOPIC_DELETION_DISABLED
                if request.version >= 3
                else ErrorCode.INVALID_REQUEST
            )
            message = "Topic deletion is disabled; set delete.topic.enable=true on the broker."
            return self.on_error(body, code, message, request.version)
        results: list[DeletableTopicResult] = []
        found: list[TopicImage] = []
        asked = Counter((topic.name, topic.topic_id) for topic in wanted)
        for topic in {(topic.name, topic.topic_id): topic for topic in wanted}.values():
            try:
                one = _find(topic, asked, self.view.image)
                admit(request, len(one.partitions), strict=request.version >= _QUOTA_ERROR_SINCE)
                found.append(one)
            except OttlaError as error:
                results.append(
                    _topics_failed(topic.name, topic.topic_id, error.code, error.message)
                )
        ids = Counter(topic.id for topic in found)
        twice = {topic_id for topic_id, count in ids.items() if count > 1}
        both = OttlaError(ErrorCode.INVALID_REQUEST, "The topic is named by its name and its id.")
        named_twice = {topic.id: topic for topic in found if topic.id in twice}
        results += [
            _topics_failed(topic.name, topic.id, both.code, both.message)
            for topic in named_twice.values()
        ]
        for outcome in await self.topics.delete(
            [t for t in found if t.id not in twice],
            author_of(request),
            timeout_ms=patience_ms(body.timeout_ms),
        ):
            if outcome.error is not None:
                results.append(
                    _topics_failed(
                        outcome.name, NO_TOPIC_ID, outcome.error.code, outcome.error.message
                    )
                )
            elif outcome.topic is not None:
                results.append(DeletableTopicResult(name=outcome.name, topic_id=outcome.topic.id))
        return DeleteTopicsResponse(responses=results)

    @staticmethod
    def on_error(
        body: DeleteTopicsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> DeleteTopicsResponse:
        """Return the error for every topic."""
        return DeleteTopicsResponse(
            responses=[
                _topics_failed(one.name, one.topic_id, code, message) for one in _wanted(body)
            ]
        )


def _wanted(body: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return body.topics or [DeleteTopicState(name=name) for name in body.topic_names]


def _find(
    topic: DeleteTopicState, asked: Counter[tuple[str | None, UUID]], image: ClusterImage
) -> TopicImage:
    if asked[topic.name, topic.topic_id] > 1:
        what = "name" if topic.name is not None else "id"
        raise OttlaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
    if topic.name is not None:
        if topic.topic_id != NO_TOPIC_ID:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        found = image.topic(topic.name)
        if found is None:
            raise unknown_topic(topic.name)
        return found
    if topic.topic_id == NO_TOPIC_ID:
        raise OttlaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    found = image.topic_by_id(TopicId(topic.topic_id))
    if found is None:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_ID,
            f"There is no topic with id {topic.topic_id}; it may have been deleted already.",
        )
    return found


def _topics_failed(
    name: str | None, topic_id: UUID, code: ErrorCode, message: str | None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=message
    )


# A requested offset of -1 means the high watermark.
_HIGH_WATERMARK = -1


@dataclass(slots=True, eq=False, repr=False)
class _Outcome:
    """The outcome for one partition of a DeleteRecords request."""

    index: int
    partition: Partition | None = None
    start: int = -1
    code: ErrorCode = ErrorCode.NONE


def _records_changes(
    body: DeleteRecordsRequest, response: DeleteRecordsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic; offset -1 means the high watermark."""
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
    """DeleteRecords (21), versions 0-2: raises the log start offset.

    Segments below it are deleted (KIP-107). The answer is sent when the new log start offset is on
    the leader's disk and the live replicas have adopted it, or at the timeout. If the answer did
    not wait for the disk, a killed broker would serve the records again. The answer has the lowest
    log start offset of the replicas.
    """

    api = Api(
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        Versions(0, 2),
        needs=each(
            lambda body: body.topics,
            lambda response: response.topics,
            named(AclOperation.DELETE, AclResource.TOPIC, lambda topic: topic.name),
        ),
        changes=_records_changes,
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
        # A client may delete records that were acknowledged with acks=1 but are not flushed yet.
        await until_flushed(self._wanted(body), self.runtime.purgatory)
        by = str(request.connection.principal)
        outcomes = [
            [
                self._move(topic.name, one.partition_index, one.offset, by)
                for one in topic.partitions
            ]
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

    def _move(self, topic: str, index: int, offset: int, by: str) -> _Outcome:
        """Raise the log start offset of one log, in memory only."""
        try:
            if topic in INTERNAL_TOPICS and self.view.image.partition(topic, index) is not None:
                raise OttlaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of {topic} belong to the broker"
                )
            partition = self.partitions.get(topic, index)
            return _Outcome(index, partition, _move_start(partition, offset, by))
        except OttlaError as error:
            return _Outcome(index, code=error.code)

    async def _write_starts(self, outcomes: list[_Outcome]) -> None:
        """Write the log start offset checkpoints of the directories whose logs have new ones."""
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
        """Return the answer for a partition.

        If it must wait for followers, it is also added to `waiting`.
        """
        partition = outcome.partition
        if partition is None or outcome.code != ErrorCode.NONE:
            return _records_failed(outcome.index, outcome.code)
        if partition.leader is None:
            return _records_failed(outcome.index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
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
                        _records_failed(wanted.partition_index, code) for wanted in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )


def _move_start(partition: Partition, offset: int, by: str) -> int:
    """Raise the log start offset to `offset` if it is lower; return the requested offset."""
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
        partition.advance_log_start(offset, by)
    return offset


def _records_failed(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)
