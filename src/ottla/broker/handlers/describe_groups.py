"""DescribeGroups (15), versions 0-6: members and what they read.

An unknown group is shown as dead before version 6, and is an error from there on (KIP-1043).
"""

from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.requests.authorized import with_operations
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.group.coordinator import Coordinator
from ottla.group.turn import Call, Decision, Moment
from ottla.wire.api import ApiKey
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: DescribeGroupsRequest) -> None:
    """Ask the coordinator of each group."""
    broker.groups.ask_each(
        request,
        body.groups,
        lambda group_id: partial(_describe, group_id),
        _failed,
        lambda groups: DescribeGroupsResponse(
            groups=with_operations(groups, asked=body.include_authorized_operations)
        ),
    )


def on_error(
    body: DescribeGroupsRequest, code: ErrorCode, _message: str | None, _version: int
) -> DescribeGroupsResponse:
    """The same error for every group."""
    return DescribeGroupsResponse(groups=[_failed(group_id, code) for group_id in body.groups])


def _describe(group_id: str, coordinator: Coordinator, call: Call, _at: Moment) -> Decision:
    return coordinator.describe(call, group_id)


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)


HANDLER = LegacyHandler(ApiKey.DESCRIBE_GROUPS, 0, 6, handle)
