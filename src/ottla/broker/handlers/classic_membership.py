"""The handlers for members of classic groups: join, sync, heartbeat, leave."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import GroupAnswer, whole_answer
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Guard, resource
from ottla.broker.requests.request import RequestContext
from ottla.group.classic.rebalance import join_refused
from ottla.group.coordinator.membership_commands import MembershipCommands
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

# Before this version the protocol name cannot be null.
_NULL_PROTOCOL_FROM = 7
# From this version on SyncGroup has the protocol name.
_PROTOCOL_FROM = 5
_READ_GROUP: Guard[Any, Any] = resource(
    AclOperation.READ, AclResource.GROUP, lambda body: body.group_id
)


@dataclass(slots=True, eq=False, repr=False)
class _MemberHandler(Handler):
    """Lets the group's coordinator run `command` for a member."""

    command: ClassVar["staticmethod[[MembershipCommands, Call, Any, Moment], GroupDecision]"]

    groups: Groups

    def handle(self, request: RequestContext, body: Any) -> None:
        """Pass the command to the group's coordinator, which answers the request."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        self.check(request, body)
        self.groups.run(
            body.group_id,
            self.answer(request, body),
            lambda coordinator, call, at: self.command(coordinator.members, call, body, at),
        )

    def check(self, request: RequestContext, body: Any) -> None:
        """Raise OttlaError if the request is invalid."""

    def answer(self, request: RequestContext, body: Any) -> GroupAnswer:
        """Return the ticket for the coordinator's answer."""
        return whole_answer(request, body, self.on_error)


class JoinGroup(_MemberHandler):
    """JoinGroup (11), versions 0-9: lets a member join or rejoin a group (KIP-394, KIP-345).

    The answer waits until the join phase of the rebalance ends.
    """

    __slots__ = ()

    api = Api(
        JoinGroupRequest,
        JoinGroupResponse,
        Versions(0, 9),
        needs=_READ_GROUP,
    )
    command = staticmethod(MembershipCommands.join)

    def answer(self, request: RequestContext, body: JoinGroupRequest) -> GroupAnswer:
        """Return a ticket that converts the answer to the version of the request."""
        version = request.version
        return GroupAnswer(
            request,
            lambda message: request.reply(_fitted(message, version)),
            lambda code: self.on_error(body, code, None, version),
        )

    def check(self, request: RequestContext, body: JoinGroupRequest) -> None:
        if not body.member_id:
            self.groups.admit(request, body.group_id)

    @staticmethod
    def on_error(
        body: JoinGroupRequest, code: ErrorCode, _message: str | None, version: int
    ) -> JoinGroupResponse:
        """Return the error with the member id of the request."""
        return _fitted(join_refused(code, body.member_id), version)


def _fitted(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if response.protocol_name is None and version < _NULL_PROTOCOL_FROM:
        response.protocol_name = ""
    return response


class SyncGroup(_MemberHandler):
    """SyncGroup (14): the group leader sends the assignment; each member gets its part.

    From version 5 on the client sends the group's protocol name (KIP-559).
    """

    __slots__ = ()

    api = Api(
        SyncGroupRequest,
        SyncGroupResponse,
        Versions(0, 5),
        needs=_READ_GROUP,
    )
    command = staticmethod(MembershipCommands.sync)

    def check(self, request: RequestContext, body: SyncGroupRequest) -> None:
        if request.version >= _PROTOCOL_FROM and None in (body.protocol_type, body.protocol_name):
            raise OttlaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name must be given"
            )


class Heartbeat(_MemberHandler):
    """Heartbeat (12): reports that a member is alive; the answer may ask it to rejoin."""

    __slots__ = ()

    api = Api(
        HeartbeatRequest,
        HeartbeatResponse,
        Versions(0, 4),
        needs=_READ_GROUP,
    )
    command = staticmethod(MembershipCommands.heartbeat)

    @staticmethod
    def on_error(
        _body: HeartbeatRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> HeartbeatResponse:
        """Return no error while groups load, because sessions start only after loading."""
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            code = ErrorCode.NONE
        return HeartbeatResponse(error_code=code)


class LeaveGroup(_MemberHandler):
    """LeaveGroup (13), versions 0-5: removes members; from version 3 on many at once (KIP-345)."""

    __slots__ = ()

    api = Api(
        LeaveGroupRequest,
        LeaveGroupResponse,
        Versions(0, 5),
        needs=_READ_GROUP,
    )
    command = staticmethod(MembershipCommands.leave)
