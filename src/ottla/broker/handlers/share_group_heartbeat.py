"""ShareGroupHeartbeat (76), version 1: joining a share group, reporting and leaving (KIP-932).

Members get partitions only when their state has begun. A heartbeat that is the first to speak of a
topic has it begun before it is answered, so that its member need not wait for the next one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups.commands import command
from ottla.broker.groups.image_topics import ImageTopics
from ottla.broker.requests.features import require_feature
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.beginning import begin_state, delete_state, keys_of
from ottla.broker.share.group_settings import share_pace
from ottla.broker.share.messages import Begin
from ottla.group.share.heartbeating import Heard
from ottla.metadata.features import SHARE
from ottla.share.records import UNKNOWN, ShareKey
from ottla.wire.api import ApiKey
from ottla.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


@dataclass(frozen=True, slots=True)
class ShareGroupHeartbeat(Handler):
    """Serves ShareGroupHeartbeat."""

    api = ApiKey.SHARE_GROUP_HEARTBEAT
    versions = Versions(1, 1)

    view: ClusterView
    broker: "Broker"

    async def handle(
        self, request: RequestContext, body: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        """Have the group's coordinator decide, and state begun where it lacks."""
        require_feature(self.view.image, SHARE)
        heard = await self._hear(request, body)
        if heard.response.error_code or not (heard.to_begin or heard.to_delete):
            return heard.response
        group_id = body.group_id
        if heard.to_delete:
            await delete_state(self.broker, request, group_id, heard.to_delete)
        await begin_state(
            self.broker,
            request,
            group_id,
            await self._begins(request, heard, group_id),
            heard.to_begin,
        )
        again = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=body.member_id,
            member_epoch=heard.response.member_epoch,
            subscribed_topic_names=body.subscribed_topic_names,
        )
        try:
            response = (await self._hear(request, again)).response
        except OttlaError:
            return heard.response
        if not response.error_code:
            # The member has its partitions one heartbeat earlier than in Kafka, in the epoch that
            # Kafka answers with here; the next heartbeat tells it the epoch they belong to.
            response.member_epoch = heard.response.member_epoch
            if response.assignment is None:
                # Nothing has changed since the first answer, which the member has yet to hear.
                response.assignment = heard.response.assignment
        return response

    async def _hear(self, request: RequestContext, body: ShareGroupHeartbeatRequest) -> Heard:
        topics = ImageTopics(self.view.image)
        pace = share_pace(self.broker, body.group_id)
        heard: Heard = await command(
            self.broker,
            request,
            body.group_id,
            lambda coordinator, call, at: coordinator.share.heartbeat(call, body, topics, pace, at),
        )
        return heard

    async def _begins(
        self, request: RequestContext, heard: Heard, group_id: str
    ) -> dict[ShareKey, Begin]:
        """Where state begins: of partitions that a topic has got since, at their first record."""
        allowed = await command(
            self.broker,
            request,
            group_id,
            lambda coordinator, call, _at: coordinator.share.begun(call, group_id),
        )
        # Those that had state of all partitions there were.
        grown = {
            topic.id
            for topic in allowed.topics
            if topic.partitions == frozenset(range(len(topic.partitions)))
        }
        return {
            key: Begin(heard.epoch, 0 if key.topic_id in grown else UNKNOWN)
            for key in keys_of(group_id, heard.to_begin)
        }

    @staticmethod
    def on_error(
        _body: ShareGroupHeartbeatRequest, code: ErrorCode, message: str | None, _version: int
    ) -> ShareGroupHeartbeatResponse:
        """The error, and nothing else."""
        return ShareGroupHeartbeatResponse(error_code=code, error_message=message)
