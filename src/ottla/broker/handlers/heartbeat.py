"""Heartbeat (12), versions 0-4: reports that a member is alive; the answer may ask it to rejoin."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.classic_membership import HeartbeatRequest, HeartbeatResponse


@dataclass(slots=True, eq=False, repr=False)
class Heartbeat(Handler):
    """Serves Heartbeat."""

    api = Api(
        HeartbeatRequest,
        HeartbeatResponse,
        Versions(0, 4),
        needs=resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
    )

    groups: Groups

    def handle(self, request: RequestContext, body: HeartbeatRequest) -> None:
        """Have the group's coordinator decide."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        self.groups.run(
            body.group_id,
            WholeAnswer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.members.heartbeat(call, body, at),
        )

    @staticmethod
    def on_error(
        _body: HeartbeatRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> HeartbeatResponse:
        """Return no error while groups load, because sessions start only after loading."""
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            code = ErrorCode.NONE
        return HeartbeatResponse(error_code=code)
