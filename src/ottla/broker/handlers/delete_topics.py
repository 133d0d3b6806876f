"""DeleteTopics (20), versions 1-6: deletes topics by name, from 6 on also by id (KIP-516)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.quotas.mutation_quota import admit
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer
from ottla.broker.requests.portions import Repeated, in_portions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.topics import Topics, patience_ms, unknown_topic
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_QUOTA_ERROR_SINCE = 5


def _needs(
    check: RequestCheck[DeleteTopicsRequest],
) -> Amend[DeleteTopicsResponse] | DeniedAnswer | None:
    """Require DELETE on the cluster, or on each topic.

    The name of a topic requested by id stays hidden from clients without DESCRIBE.
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
            # The handler answers that the topic does not exist, which the client may know.
            allowed.append(asked)
            continue
        refused.append(
            _failed(
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


def _changes(_body: DeleteTopicsRequest, response: DeleteTopicsResponse) -> Iterator[AdminChange]:
    """Return an audit line for each topic; a missing topic may have only an id."""
    for one in response.responses:
        need = topic_need(AclOperation.DELETE, one.name or str(one.topic_id))
        yield AdminChange((need,), {"topic_id": str(one.topic_id)}, one.error_code)


def _is_by_id(topic: DeleteTopicState) -> bool:
    """Whether the request names the topic by id; a topic named both ways is refused."""
    return topic.name is None


@dataclass(slots=True, eq=False, repr=False)
class DeleteTopics(Handler):
    """Serves DeleteTopics."""

    api = Api(
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        Versions(1, 6),
        needs=_needs,
        changes=_changes,
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
        """Delete the topics that exist, each independently."""
        wanted = _wanted(body)
        if not self.settings.flag("delete.topic.enable"):
            # This code was added with version 3 (KIP-322).
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
                results.append(_failed(topic.name, topic.topic_id, error.code, error.message))
        ids = Counter(topic.id for topic in found)
        twice = {topic_id for topic_id, count in ids.items() if count > 1}
        both = OttlaError(ErrorCode.INVALID_REQUEST, "The topic is named by its name and its id.")
        named_twice = {topic.id: topic for topic in found if topic.id in twice}
        results += [
            _failed(topic.name, topic.id, both.code, both.message) for topic in named_twice.values()
        ]
        for outcome in await self.topics.delete(
            [t for t in found if t.id not in twice], timeout_ms=patience_ms(body.timeout_ms)
        ):
            if outcome.error is not None:
                results.append(
                    _failed(outcome.name, NO_TOPIC_ID, outcome.error.code, outcome.error.message)
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
            responses=[_failed(one.name, one.topic_id, code, message) for one in _wanted(body)]
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


def _failed(
    name: str | None, topic_id: UUID, code: ErrorCode, message: str | None
) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=message
    )
