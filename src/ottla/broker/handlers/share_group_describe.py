"""ShareGroupDescribe (77), version 1: share groups and their members (KIP-932)."""

from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.groups.image_topics import ImageTopics
from ottla.broker.requests.authorized import with_operations
from ottla.broker.requests.features import require_feature
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.group.coordinator import Coordinator
from ottla.group.turn import Call, Decision, Moment
from ottla.metadata.features import SHARE
from ottla.wire.api import ApiKey
from ottla.wire.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: ShareGroupDescribeRequest) -> None:
    """Ask the coordinator of each group."""
    require_feature(broker.image, SHARE)
    topics = ImageTopics(broker.image)
    broker.groups.ask_each(
        request,
        body.group_ids,
        lambda group_id: partial(_describe, group_id, topics),
        _failed,
        lambda groups: ShareGroupDescribeResponse(
            groups=with_operations(groups, asked=body.include_authorized_operations)
        ),
    )


def on_error(
    body: ShareGroupDescribeRequest, code: ErrorCode, _message: str | None, _version: int
) -> ShareGroupDescribeResponse:
    """The same error for every group."""
    return ShareGroupDescribeResponse(
        groups=[_failed(group_id, code) for group_id in body.group_ids]
    )


def _describe(
    group_id: str, topics: ImageTopics, coordinator: Coordinator, call: Call, _at: Moment
) -> Decision:
    return coordinator.share.describe(call, group_id, topics)


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)


HANDLER = LegacyHandler(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, handle)
