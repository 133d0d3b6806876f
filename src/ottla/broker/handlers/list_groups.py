"""ListGroups (16), versions 0-5: lists the groups that this broker coordinates.

Filters by state from version 4 (KIP-518), by type from version 5 (KIP-848).
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def _needs(check: RequestCheck[ListGroupsRequest]) -> Amend[ListGroupsResponse] | None:
    """Require DESCRIBE on the cluster.

    Otherwise list only the groups that the client may DESCRIBE.
    """
    if check.sees_cluster(AclOperation.DESCRIBE):
        return None

    def amend(response: ListGroupsResponse) -> None:
        response.groups = [
            group
            for group in response.groups
            if check.sees(AclOperation.DESCRIBE, AclResource.GROUP, group.group_id)
        ]

    return amend


@dataclass(slots=True, eq=False, repr=False)
class ListGroups(Handler):
    """Serves ListGroups."""

    api = Api(ListGroupsRequest, ListGroupsResponse, Versions(0, 5), needs=_needs)

    groups: Groups

    def handle(self, _request: RequestContext, body: ListGroupsRequest) -> ListGroupsResponse:
        """Collect the groups of all shards.

        Answer with an error while one loads, since it would be missing.
        """
        groups: list[ListedGroup] = []
        for shard in self.groups.shards():
            if shard.coordinator is None:
                raise OttlaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are loading; ask again shortly"
                )
            groups.extend(shard.coordinator.list_groups(body.states_filter, body.types_filter))
        return ListGroupsResponse(groups=groups)
