"""CreatePartitions (37), versions 0-3: adds partitions to topics (KIP-195)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.quotas.mutation_quota import admit
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each, named
from ottla.broker.requests.portions import Repeated, in_portions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.topics import Topics, patience_ms
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_QUOTA_ERROR_SINCE = 3


def _changes(
    body: CreatePartitionsRequest, response: CreatePartitionsResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each topic."""
    if body.validate_only:
        return
    codes = {one.name: one.error_code for one in response.results}
    for wanted in body.topics:
        detail = {"partition_count": wanted.count}
        need = topic_need(AclOperation.ALTER, wanted.name)
        yield AdminChange((need,), detail, codes.get(wanted.name, 0))


@dataclass(slots=True, eq=False, repr=False)
class CreatePartitions(Handler):
    """Serves CreatePartitions."""

    api = Api(
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        Versions(0, 3),
        needs=each(
            lambda body: body.topics,
            lambda response: response.results,
            named(AclOperation.ALTER, AclResource.TOPIC, lambda topic: topic.name),
        ),
        changes=_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.results,
            lambda topic: topic.name,
            most=64,
            repeated=Repeated.ANSWERED_ONCE,
            keeps_lists=True,
        ),
        on_error=lambda body, code, message: CreatePartitionsResponse(
            results=[_failed(topic.name, code, message) for topic in body.topics]
        ),
    )

    view: ClusterView
    topics: Topics

    async def handle(
        self, request: RequestContext, body: CreatePartitionsRequest
    ) -> CreatePartitionsResponse:
        """Add partitions to each topic independently."""
        counts = Counter(topic.name for topic in body.topics)
        results: dict[str, CreatePartitionsTopicResult] = {}
        for topic in body.topics:
            try:
                if counts[topic.name] > 1:
                    raise OttlaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                known = self.view.image.topic(topic.name)
                if known is not None and not body.validate_only:
                    added = max(0, topic.count - len(known.partitions))
                    admit(request, added, strict=request.version >= _QUOTA_ERROR_SINCE)
                await self._grow(topic, body)
                results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
            except OttlaError as error:
                results[topic.name] = _failed(topic.name, error.code, error.message)
        return CreatePartitionsResponse(results=list(results.values()))

    async def _grow(self, topic: CreatePartitionsTopic, body: CreatePartitionsRequest) -> None:
        assignments = None
        if topic.assignments is not None:
            assignments = [assignment.broker_ids for assignment in topic.assignments]
        await self.topics.grow(
            topic.name,
            topic.count,
            assignments,
            validate_only=body.validate_only,
            timeout_ms=patience_ms(body.timeout_ms),
        )


def _failed(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
