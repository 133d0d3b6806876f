"""DescribeGroups (15), versions 0-6: lists members and their assignments.

Before version 6 an unknown group is shown as dead; from 6 on it is an error (KIP-1043).
"""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.broker.groups import Groups
from ottla.broker.requests.authorized import with_operations
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import described
from ottla.broker.requests.portions import in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.wire.messages.groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeGroups(Handler):
    """Serves DescribeGroups."""

    api = Api(
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        Versions(0, 6),
        needs=described(lambda body: body.groups, lambda response: response.groups),
        portions=in_portions(lambda body: body.groups, lambda response: response.groups, most=64),
        once=once(lambda body: body.groups),
        on_error=lambda body, code, _message: DescribeGroupsResponse(
            groups=[_failed(group_id, code) for group_id in body.groups]
        ),
    )

    groups: Groups

    def handle(self, request: RequestContext, body: DescribeGroupsRequest) -> None:
        """Ask the coordinator of each group."""
        self.groups.run_each(
            request,
            body.groups,
            lambda group_id: partial(_describe, group_id),
            _failed,
            lambda groups: DescribeGroupsResponse(
                groups=with_operations(groups, asked=body.include_authorized_operations)
            ),
        )


def _describe(
    group_id: str, coordinator: GroupCoordinator, call: Call, _at: Moment
) -> GroupDecision:
    return coordinator.describe(call, group_id)


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)
