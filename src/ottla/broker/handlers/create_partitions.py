"""CreatePartitions (37), versions 0-3: adds partitions to topics (KIP-195)."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.mutation_quota import admit
from ottla.broker.requests.request import RequestContext
from ottla.broker.topics.topics import patience_ms
from ottla.wire.api import ApiKey
from ottla.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

_TELLS_QUOTA_SINCE = 3


async def handle(
    broker: "Broker", request: RequestContext, body: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Grow each topic; each stands for itself."""
    counts = Counter(topic.name for topic in body.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in body.topics:
        try:
            if counts[topic.name] > 1:
                raise OttlaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            known = broker.image.topic(topic.name)
            if known is not None and not body.validate_only:
                added = max(0, topic.count - len(known.partitions))
                admit(request, added, strict=request.version >= _TELLS_QUOTA_SINCE)
            await _grow(broker, topic, body)
            results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
        except OttlaError as error:
            results[topic.name] = _failed(topic.name, error.code, error.message)
    return CreatePartitionsResponse(results=list(results.values()))


async def _grow(
    broker: "Broker", topic: CreatePartitionsTopic, body: CreatePartitionsRequest
) -> None:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    await broker.topics.grow(
        topic.name,
        topic.count,
        assignments,
        validate_only=body.validate_only,
        timeout_ms=patience_ms(body.timeout_ms),
    )


def _failed(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


def on_error(
    body: CreatePartitionsRequest, code: ErrorCode, message: str | None, _version: int
) -> CreatePartitionsResponse:
    """The error on every topic."""
    return CreatePartitionsResponse(
        results=[_failed(topic.name, code, message) for topic in body.topics]
    )


HANDLER = LegacyHandler(ApiKey.CREATE_PARTITIONS, 0, 3, handle)
