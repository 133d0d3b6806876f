"""AlterReplicaLogDirs (34), versions 1-2: moves replicas between log directories (KIP-113).

Answered at once: the copying goes on behind it, and DescribeLogDirs shows how far it is. For a
replica that is not here yet the answer is REPLICA_NOT_AVAILABLE, and the directory is remembered.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(
    broker: "Broker", _request: RequestContext, body: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin the moves, each by itself."""
    codes: dict[str, dict[int, ErrorCode]] = {}
    for directory in body.dirs:
        for topic in directory.topics:
            answers = codes.setdefault(topic.name, {})
            for index in topic.partitions:
                answers[index] = _move(broker, topic.name, index, directory.path)
    return _response(codes)


def _move(broker: "Broker", topic: str, index: int, path: str) -> ErrorCode:
    try:
        broker.replication.moves.move(topic, index, path)
    except OttlaError as error:
        return error.code
    return ErrorCode.NONE


def on_error(
    body: AlterReplicaLogDirsRequest, code: ErrorCode, _message: str | None, _version: int
) -> AlterReplicaLogDirsResponse:
    """The same error for every partition."""
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


HANDLER = LegacyHandler(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, handle)
