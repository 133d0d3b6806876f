"""AlterReplicaLogDirs (34), versions 1-2: moves replicas between log directories (KIP-113).

The answer is sent at once; copying continues in the background, and DescribeLogDirs shows its
progress. For a replica that this broker does not have yet, the answer is REPLICA_NOT_AVAILABLE, and
the directory is remembered.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.audit.details import partition_changes
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation
from ottla.wire.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def _changes(
    body: AlterReplicaLogDirsRequest, response: AlterReplicaLogDirsResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each topic in each folder."""
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
    """Serves AlterReplicaLogDirs."""

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
        """Begin the moves, each independently."""
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
