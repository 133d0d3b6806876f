"""DeleteShareGroupOffsets (92), version 0: deletes an empty share group's topics (KIP-932)."""

from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_state import GroupShareStates, require
from ottla.group.share.groups import Allowed
from ottla.metadata.features import SHARE
from ottla.share.coordinator import KeyAnswer
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsets(Handler):
    """Serves DeleteShareGroupOffsets."""

    api = ApiKey.DELETE_SHARE_GROUP_OFFSETS
    versions = Versions(0, 0)

    view: ClusterView
    groups: Groups
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Delete the state of the topics: the group will read their records again."""
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

    @staticmethod
    def on_error(
        _body: DeleteShareGroupOffsetsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> DeleteShareGroupOffsetsResponse:
        """The error above all topics."""
        return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message)


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
