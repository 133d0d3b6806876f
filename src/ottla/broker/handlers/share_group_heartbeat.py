"""ShareGroupHeartbeat (76), version 1: serves share group members: join, report, leave (KIP-932).

Members are assigned only partitions whose state is initialized. The first heartbeat that subscribes
to a topic initializes it before the answer, so that its member need not wait for the next
heartbeat.
"""

from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.groups.image_topics import ImageTopics
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import subscription
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.group_state import GroupShareStates, keys_of
from ottla.broker.share.messages import Begin
from ottla.group.share.heartbeats import Heard
from ottla.metadata.features import SHARE
from ottla.share.records import UNKNOWN, ShareKey
from ottla.wire.messages.consumer_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupHeartbeat(Handler):
    """Serves ShareGroupHeartbeat; initializes the state of newly subscribed partitions."""

    api = Api(
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
        Versions(1, 1),
        needs=subscription(lambda body: body.group_id, lambda body: body.subscribed_topic_names),
    )

    view: ClusterView
    groups: Groups
    group_settings: ShareGroupSettings
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        """Have the group's coordinator decide, and initialize missing state."""
        require_feature(self.view.image, SHARE)
        if body.member_epoch == 0:
            self.groups.admit(request, body.group_id)
        outcome = await self._heartbeat(request, body)
        if outcome.response.error_code or not (outcome.to_begin or outcome.to_delete):
            return outcome.response
        group_id = body.group_id
        if outcome.to_delete:
            await self.state.delete(request, group_id, outcome.to_delete)
        await self.state.initialize(
            request,
            group_id,
            await self._begins(request, outcome, group_id),
            outcome.to_begin,
        )
        again = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=body.member_id,
            member_epoch=outcome.response.member_epoch,
            subscribed_topic_names=body.subscribed_topic_names,
        )
        try:
            response = (await self._heartbeat(request, again)).response
        except OttlaError:
            return outcome.response
        if not response.error_code:
            # The member gets its partitions one heartbeat earlier than in Kafka, with the epoch
            # that Kafka answers here; the next heartbeat's answer has the epoch to which they
            # belong.
            response.member_epoch = outcome.response.member_epoch
            if response.assignment is None:
                # Unchanged since the first answer, which has not reached the member yet.
                response.assignment = outcome.response.assignment
        return response

    async def _heartbeat(self, request: RequestContext, body: ShareGroupHeartbeatRequest) -> Heard:
        topics = ImageTopics(self.view.image)
        pace = self.group_settings.pace(body.group_id)
        outcome: Heard = await self.groups.run_and_wait(
            request,
            body.group_id,
            lambda coordinator, call, at: coordinator.share.heartbeat(call, body, topics, pace, at),
        )
        return outcome

    async def _begins(
        self, request: RequestContext, outcome: Heard, group_id: str
    ) -> dict[ShareKey, Begin]:
        """Return the start offsets of new state: 0 for partitions added to a known topic."""
        allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, _at: coordinator.share.begun(call, group_id),
        )
        # Topics of which all earlier partitions have state.
        grown = {
            topic.id
            for topic in allowed.topics
            if topic.partitions == frozenset(range(len(topic.partitions)))
        }
        return {
            key: Begin(outcome.epoch, 0 if key.topic_id in grown else UNKNOWN)
            for key in keys_of(group_id, outcome.to_begin)
        }
