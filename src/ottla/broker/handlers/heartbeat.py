"""Heartbeat (12), versions 0-4: a member is alive, and learns whether it must join again."""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: HeartbeatRequest) -> None:
    """Have the group's coordinator decide."""
    if not body.group_id:
        raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
    broker.groups.run(
        body.group_id,
        WholeAnswer(request, body, on_error),
        lambda coordinator, call, at: coordinator.heartbeat(call, body, at),
    )


def on_error(
    _body: HeartbeatRequest, code: ErrorCode, _message: str | None, _version: int
) -> HeartbeatResponse:
    """While groups load a heartbeat is answered as well: sessions start when they are loaded."""
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.NONE
    return HeartbeatResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.HEARTBEAT, 0, 4, handle)
