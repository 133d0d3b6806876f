"""LeaveGroup (13), versions 0-5: removes members; from version 3 on many at once (KIP-345)."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.classic_membership import LeaveGroupRequest, LeaveGroupResponse


@dataclass(slots=True, eq=False, repr=False)
class LeaveGroup(Handler):
    """Serves LeaveGroup."""

    api = Api(
        LeaveGroupRequest,
        LeaveGroupResponse,
        Versions(0, 5),
        needs=resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
    )

    groups: Groups

    def handle(self, request: RequestContext, body: LeaveGroupRequest) -> None:
        """Have the group's coordinator decide."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        self.groups.run(
            body.group_id,
            WholeAnswer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.members.leave(call, body, at),
        )
