"""SyncGroup (14), versions 0-5: the group leader sends the assignment; each member gets its part.

From version 5 on the client names the group's protocol (KIP-559).
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.classic_membership import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_FROM = 5


@dataclass(slots=True, eq=False, repr=False)
class SyncGroup(Handler):
    """Serves SyncGroup."""

    api = Api(
        SyncGroupRequest,
        SyncGroupResponse,
        Versions(0, 5),
        needs=resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
    )

    groups: Groups

    def handle(self, request: RequestContext, body: SyncGroupRequest) -> None:
        """Have the group's coordinator decide."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        if request.version >= _PROTOCOL_FROM and None in (body.protocol_type, body.protocol_name):
            raise OttlaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name must be given"
            )
        self.groups.run(
            body.group_id,
            WholeAnswer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.members.sync(call, body, at),
        )
