"""DeleteShareGroupOffsets (92), version 0: deletes an empty share group's topics (KIP-932)."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.check import MESSAGES
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, named, resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_state import GroupShareStates, require
from ottla.group.share.groups import Allowed
from ottla.metadata.features import SHARE
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.share.coordinator import KeyAnswer
from ottla.wire.messages.share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


def _denied(
    topic: DeleteShareGroupOffsetsRequestTopic, code: ErrorCode
) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=NO_TOPIC_ID,
        error_code=code,
        error_message=MESSAGES[code],
    )


def _changes(
    body: DeleteShareGroupOffsetsRequest, response: DeleteShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each topic."""
    codes = {one.topic_name: one.error_code for one in response.responses}
    need = group_need(AclOperation.DELETE, body.group_id)
    for wanted in body.topics:
        code = response.error_code or codes.get(wanted.topic_name, 0)
        yield AdminChange((need,), {"topic": bounded(wanted.topic_name)}, code)


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsets(Handler):
    """Serves DeleteShareGroupOffsets."""

    api = Api(
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsResponse,
        Versions(0, 0),
        needs=all_of(
            resource(AclOperation.DELETE, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.responses,
                named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.topic_name),
                _denied,
                error_of=lambda response: response.error_code,
            ),
        ),
        changes=_changes,
    )

    view: ClusterView
    groups: Groups
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Delete the state of the topics, so that the group will read their records again."""
        require_feature(self.view.image, SHARE)
        group_id = body.group_id
        if not group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
        had: Allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, _at: coordinator.share.begun(call, group_id),
        )
        names = {topic.topic_name for topic in body.topics}
        ids = {topic.name: topic.id for topic in had.topics if topic.name in names}
        allowed: Allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, at: coordinator.share.start_deleting(
                call, group_id, list(ids.values()), at
            ),
        )
        require(allowed, group_id, f"Group {group_id} not found.")
        answers = await self.state.delete(request, group_id, allowed.topics)
        failed = {key.topic_id: each for key, each in answers.items() if each.code}
        return DeleteShareGroupOffsetsResponse(
            responses=[_result(topic.topic_name, ids, failed) for topic in body.topics]
        )


def _result(
    name: str, ids: dict[str, UUID], failed: dict[UUID, KeyAnswer]
) -> DeleteShareGroupOffsetsResponseTopic:
    topic_id = ids.get(name)
    if topic_id is None:
        answered = KeyAnswer(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            message="There is no offset information to delete.",
        )
    else:
        answered = failed.get(topic_id, KeyAnswer())
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id or NO_TOPIC_ID,
        error_code=answered.code,
        error_message=answered.message,
    )
