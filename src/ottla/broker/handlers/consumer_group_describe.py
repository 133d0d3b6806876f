"""ConsumerGroupDescribe (69), versions 0-1: groups of the consumer protocol (KIP-848)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.groups.image_topics import ImageTopics
from ottla.broker.requests.authorized import with_operations
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import described
from ottla.broker.requests.portions import in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.metadata.features import GROUP
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)


def _topics(group: DescribedConsumerGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (part.topic_name for part in assignment.topic_partitions)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupDescribe(Handler):
    """Serves ConsumerGroupDescribe."""

    api = Api(
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
        Versions(0, 1),
        needs=described(lambda body: body.group_ids, lambda response: response.groups, _topics),
        portions=in_portions(
            lambda body: body.group_ids, lambda response: response.groups, most=64
        ),
        once=once(lambda body: body.group_ids),
        on_error=lambda body, code, _message: ConsumerGroupDescribeResponse(
            groups=[_failed(group_id, code) for group_id in body.group_ids]
        ),
    )

    view: ClusterView
    groups: Groups

    def handle(self, request: RequestContext, body: ConsumerGroupDescribeRequest) -> None:
        """Ask the coordinator of each group."""
        require_feature(self.view.image, GROUP)
        topics = ImageTopics(self.view.image)
        self.groups.run_each(
            request,
            body.group_ids,
            lambda group_id: partial(_describe, group_id, topics),
            _failed,
            lambda groups: ConsumerGroupDescribeResponse(
                groups=with_operations(groups, asked=body.include_authorized_operations)
            ),
        )


def _describe(
    group_id: str, topics: ImageTopics, coordinator: GroupCoordinator, call: Call, _at: Moment
) -> GroupDecision:
    return coordinator.describe_consumer_group(call, group_id, topics)


def _failed(group_id: str, code: ErrorCode) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(group_id=group_id, error_code=code)
