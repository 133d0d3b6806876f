"""JoinGroup (11), versions 0-9: lets a member join or rejoin a group (KIP-394, KIP-345).

The answer waits until the join phase of the rebalance ends.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.group.classic.answers import join_refused
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.classic_membership import JoinGroupRequest, JoinGroupResponse

# Before this version the name of the protocol cannot be null.
_NULL_PROTOCOL_FROM = 7


class _Answer(WholeAnswer):
    """Adapts the answer to the version of the waiting request."""

    __slots__ = ()

    def give(self, message: JoinGroupResponse) -> None:
        super().give(_fitted(message, self.request.version))


@dataclass(slots=True, eq=False, repr=False)
class JoinGroup(Handler):
    """Serves JoinGroup."""

    api = Api(
        JoinGroupRequest,
        JoinGroupResponse,
        Versions(0, 9),
        needs=resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
    )

    groups: Groups

    def handle(self, request: RequestContext, body: JoinGroupRequest) -> None:
        """Have the group's coordinator decide."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        if not body.member_id:
            self.groups.admit(request, body.group_id)
        self.groups.run(
            body.group_id,
            _Answer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.members.join(call, body, at),
        )

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
