"""LeaveGroup (13), versions 0-5: members go; from version 3 on many at once (KIP-345)."""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: LeaveGroupRequest) -> None:
    """Have the group's coordinator decide."""
    if not body.group_id:
        raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
    broker.groups.run(
        body.group_id,
        WholeAnswer(request, body, on_error),
        lambda coordinator, call, at: coordinator.leave(call, body, at),
    )


def on_error(
    _body: LeaveGroupRequest, code: ErrorCode, _message: str | None, _version: int
) -> LeaveGroupResponse:
    """An error for the request as a whole."""
    return LeaveGroupResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.LEAVE_GROUP, 0, 5, handle)
