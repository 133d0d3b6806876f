"""The handlers of heartbeats and descriptions of consumer protocol groups and share groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import whole_answer
from ottla.broker.groups.topics import ImageTopics, sight_of
from ottla.broker.requests.access import with_operations
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import described, subscription
from ottla.broker.requests.portions import in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.group_state import GroupShareStates, keys_of
from ottla.broker.share.messages import Begin
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment, answered
from ottla.group.share.heartbeats import HeartbeatResult
from ottla.group.values.settings import Pace
from ottla.metadata.features import GROUP, SHARE
from ottla.share.records import UNKNOWN, ShareKey
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupHeartbeat(Handler):
    """ConsumerGroupHeartbeat (68): serves groups that the coordinator assigns (KIP-848).

    Members join, report and leave by this one request. The group's own settings (`consumer.*`)
    override those of the broker.
    """

    api = Api(
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
        Versions(0, 1),
        needs=subscription(lambda body: body.group_id, lambda body: body.subscribed_topic_names),
    )

    view: ClusterView
    groups: Groups
    settings: BrokerSettings

    def handle(self, request: RequestContext, body: ConsumerGroupHeartbeatRequest) -> None:
        """Pass the heartbeat to the group's coordinator, which answers."""
        require_feature(self.view.image, GROUP)
        pace = self._pace(body.group_id)
        sight = sight_of(request)
        if body.member_epoch == 0:
            self.groups.admit(request, body.group_id)
        self.groups.run(
            body.group_id,
            whole_answer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.members.consumer_heartbeat(
                call, body, pace, at, sight
            ),
        )

    def _pace(self, group_id: str) -> Pace:
        own = self.view.image.group_configs.get(group_id, {})

        def value(name: str) -> tuple[int, str]:
            text = own.get(f"consumer.{name}")
            if text is None:
                return self.settings.integer(f"group.consumer.{name}"), f"group.consumer.{name}"
            return int(text), f"consumer.{name}"

        session_timeout_ms, setting = value("session.timeout.ms")
        return Pace(session_timeout_ms, value("heartbeat.interval.ms")[0], setting)


@dataclass(slots=True, eq=False, repr=False)
class _DescribeHandler(Handler):
    """Gets the descriptions of groups of one protocol from their coordinators."""

    feature: ClassVar[str]
    group_type: ClassVar[type[DescribedConsumerGroup | DescribedShareGroup]]
    describe: ClassVar[
        "staticmethod[[str, ImageTopics, GroupCoordinator, Call, Moment], GroupDecision]"
    ]

    view: ClusterView
    groups: Groups

    def handle(self, request: RequestContext, body: Any) -> None:
        """Ask the coordinator of each group."""
        require_feature(self.view.image, self.feature)
        topics = ImageTopics(self.view.image)
        self.groups.run_each(
            request,
            body.group_ids,
            lambda group_id: partial(self.describe, group_id, topics),
            lambda group_id, code: self.group_type(group_id=group_id, error_code=code),
            lambda groups: self.api.response(
                groups=with_operations(groups, asked=body.include_authorized_operations)
            ),
        )


def _consumer_topics(group: DescribedConsumerGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (part.topic_name for part in assignment.topic_partitions)


def _consumer_describe(
    group_id: str, topics: ImageTopics, coordinator: GroupCoordinator, call: Call, _at: Moment
) -> GroupDecision:
    return coordinator.describe_consumer_group(call, group_id, topics)


class ConsumerGroupDescribe(_DescribeHandler):
    """ConsumerGroupDescribe (69), versions 0-1: groups of the consumer protocol (KIP-848)."""

    __slots__ = ()

    api = Api(
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
        Versions(0, 1),
        needs=described(
            lambda body: body.group_ids, lambda response: response.groups, _consumer_topics
        ),
        portions=in_portions(
            lambda body: body.group_ids, lambda response: response.groups, most=64
        ),
        once=once(lambda body: body.group_ids),
        on_error=lambda body, code, _message: ConsumerGroupDescribeResponse(
            groups=[
                DescribedConsumerGroup(group_id=group_id, error_code=code)
                for group_id in body.group_ids
            ]
        ),
    )
    feature = GROUP
    group_type = DescribedConsumerGroup
    describe = staticmethod(_consumer_describe)


@dataclass(slots=True, eq=False, repr=False)
class ShareGroupHeartbeat(Handler):
    """ShareGroupHeartbeat (76): serves share group members: join, report, leave (KIP-932).

    Members are assigned only partitions whose share state is initialized. The first heartbeat that
    subscribes to a topic initializes this state before the answer, so that the member need not wait
    for its next heartbeat.
    """

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
        """Pass the heartbeat to the group's coordinator, and initialize missing share state."""
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
            # The member gets its partitions one heartbeat earlier than in Kafka. The answer still
            # has the member epoch that Kafka would return; the epoch of the new assignment follows
            # in the answer to the next heartbeat.
            response.member_epoch = outcome.response.member_epoch
            if response.assignment is None:
                # The member has not received the first assignment yet, and it has not changed
                # since.
                response.assignment = outcome.response.assignment
        return response

    async def _heartbeat(
        self, request: RequestContext, body: ShareGroupHeartbeatRequest
    ) -> HeartbeatResult:
        topics = ImageTopics(self.view.image)
        pace = self.group_settings.pace(body.group_id)
        outcome: HeartbeatResult = await self.groups.run_and_wait(
            request,
            body.group_id,
            lambda coordinator, call, at: coordinator.share.heartbeat(call, body, topics, pace, at),
        )
        return outcome

    async def _begins(
        self, request: RequestContext, outcome: HeartbeatResult, group_id: str
    ) -> dict[ShareKey, Begin]:
        """Return the start offsets of new state; it is 0 for partitions added to a known topic."""
        allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, _at: coordinator.share.begun(call, group_id),
        )
        # Topics whose earlier partitions all have state.
        grown = {
            topic.id
            for topic in allowed.topics
            if topic.partitions == frozenset(range(len(topic.partitions)))
        }
        return {
            key: Begin(outcome.epoch, 0 if key.topic_id in grown else UNKNOWN)
            for key in keys_of(group_id, outcome.to_begin)
        }


def _share_topics(group: DescribedShareGroup) -> Iterator[str]:
    for member in group.members:
        yield from (part.topic_name for part in member.assignment.topic_partitions)


def _share_describe(
    group_id: str, topics: ImageTopics, coordinator: GroupCoordinator, call: Call, _at: Moment
) -> GroupDecision:
    return answered(call, coordinator.describe_share_group(group_id, topics))


class ShareGroupDescribe(_DescribeHandler):
    """ShareGroupDescribe (77), version 1: share groups and their members (KIP-932)."""

    __slots__ = ()

    api = Api(
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
        Versions(1, 1),
        needs=described(
            lambda body: body.group_ids, lambda response: response.groups, _share_topics
        ),
        portions=in_portions(
            lambda body: body.group_ids, lambda response: response.groups, most=64
        ),
        once=once(lambda body: body.group_ids),
        # The answers to all portions are kept until the end, which slows down garbage collection.
        fewer_elements_max=60_000,
        on_error=lambda body, code, _message: ShareGroupDescribeResponse(
            groups=[
                DescribedShareGroup(group_id=group_id, error_code=code)
                for group_id in body.group_ids
            ]
        ),
    )
    feature = SHARE
    group_type = DescribedShareGroup
    describe = staticmethod(_share_describe)
