"""The handlers that describe log directories, and move replicas between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.audit.details import partition_changes
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.filesystem import FileSystem
from ottla.wire.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeLogDirs(Handler):
    """DescribeLogDirs (35): lists log directories, their volumes and their partitions.

    Sizes are those of segments, without indexes. Version 4 adds the volume's size (KIP-827),
    version 5 whether a directory takes no new partitions (KIP-1066). A replica that is being moved
    to a directory is listed there as a future replica, with its offset lag (KIP-113). A failed
    directory is listed with KAFKA_STORAGE_ERROR.
    """

    api = Api(
        DescribeLogDirsRequest,
        DescribeLogDirsResponse,
        Versions(1, 5),
        needs=cluster(AclOperation.DESCRIBE),
    )

    settings: BrokerSettings
    moves: LogDirMoves
    filesystem: FileSystem
    log_directories: LogDirectories

    def handle(
        self, _request: RequestContext, body: DescribeLogDirsRequest
    ) -> DescribeLogDirsResponse:
        """Describe every directory, with all partitions or the requested ones."""
        wanted: set[tuple[str, int]] | None = None
        if body.topics is not None:
            wanted = {(t.topic, index) for t in body.topics for index in t.partitions}
        cordoned = self.settings.texts("cordoned.log.dirs")
        directories = self.log_directories
        results = [
            self._describe(directory, wanted, is_cordoned=directory.path in cordoned)
            for directory in directories.directories
        ]
        results += [_failed(path) for path in directories.unusable]
        return DescribeLogDirsResponse(results=results)

    def _describe(
        self,
        directory: LogDirectory,
        wanted: set[tuple[str, int]] | None,
        *,
        is_cordoned: bool,
    ) -> DescribeLogDirsResult:
        if directory.failure:
            return _failed(directory.path)
        try:
            total_bytes = self.filesystem.total_bytes(directory.path)
            usable_bytes = self.filesystem.free_bytes(directory.path)
        except OSError:
            return _failed(directory.path)
        topics: dict[str, DescribeLogDirsTopic] = {}
        for partition, log in sorted(directory.logs.items()):
            if wanted is None or partition in wanted:
                _add(topics, partition, DescribeLogDirsPartition(partition_size=log.size_bytes))
        for partition, copy in sorted(directory.futures.items()):
            if wanted is None or partition in wanted:
                described = DescribeLogDirsPartition(
                    partition_size=copy.size_bytes,
                    offset_lag=self.moves.lag(partition, copy),
                    is_future_key=True,
                )
                _add(topics, partition, described)
        return DescribeLogDirsResult(
            log_dir=directory.path,
            topics=list(topics.values()),
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
            is_cordoned=is_cordoned,
        )


def _add(
    topics: dict[str, DescribeLogDirsTopic],
    partition: TopicPartition,
    described: DescribeLogDirsPartition,
) -> None:
    described.partition_index = partition.partition
    topic = topics.setdefault(partition.topic, DescribeLogDirsTopic(name=partition.topic))
    topic.partitions.append(described)


def _failed(path: str) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)


def _changes(
    body: AlterReplicaLogDirsRequest, response: AlterReplicaLogDirsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic in each directory."""
    codes = {
        (one.topic_name, part.partition_index): part.error_code
        for one in response.results
        for part in one.partitions
    }
    for folder in body.dirs:
        wanted = [(one.name, index, None) for one in folder.topics for index in one.partitions]
        answered = [(name, index, codes.get((name, index), 0)) for name, index, _ in wanted]
        detail = {"folder": bounded(folder.path)}
        need = cluster_need(AclOperation.ALTER)
        yield from partition_changes(need, wanted, answered, detail=detail)


@dataclass(slots=True, eq=False, repr=False)
class AlterReplicaLogDirs(Handler):
    """AlterReplicaLogDirs (34), versions 1-2: moves replicas between log directories (KIP-113).

    The answer is sent at once; the replicas are copied in the background, and DescribeLogDirs shows
    the progress. If this broker does not have the replica yet, it remembers the directory, and
    answers REPLICA_NOT_AVAILABLE.
    """

    api = Api(
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
        Versions(1, 2),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
        fewer_elements_max=20_000,
    )

    moves: LogDirMoves

    def handle(
        self, _request: RequestContext, body: AlterReplicaLogDirsRequest
    ) -> AlterReplicaLogDirsResponse:
        """Start each move; an error of one does not affect the others."""
        codes: dict[str, dict[int, ErrorCode]] = {}
        for directory in body.dirs:
            for topic in directory.topics:
                answers = codes.setdefault(topic.name, {})
                for index in topic.partitions:
                    answers[index] = self._move(topic.name, index, directory.path)
        return _response(codes)

    def _move(self, topic: str, index: int, path: str) -> ErrorCode:
        try:
            self.moves.move(topic, index, path)
        except OttlaError as error:
            return error.code
        return ErrorCode.NONE

    @staticmethod
    def on_error(
        body: AlterReplicaLogDirsRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> AlterReplicaLogDirsResponse:
        """Return the same error for every partition."""
        codes: dict[str, dict[int, ErrorCode]] = {}
        for directory in body.dirs:
            for topic in directory.topics:
                codes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, code))
        return _response(codes)


def _response(codes: dict[str, dict[int, ErrorCode]]) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index, code in answers.items()
                ],
            )
            for topic, answers in codes.items()
        ]
    )
