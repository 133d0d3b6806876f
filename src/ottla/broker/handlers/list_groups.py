"""ListGroups (16), versions 0-5: the groups this broker coordinates.

Filters by state from version 4 (KIP-518), by type from version 5 (KIP-848).
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(
    broker: "Broker", _request: RequestContext, body: ListGroupsRequest
) -> ListGroupsResponse:
    """Gather over all shards; while one loads the list would be incomplete, so there is none."""
    groups: list[ListedGroup] = []
    for shard in broker.groups.shards():
        if shard.coordinator is None:
            raise OttlaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are loading; ask again shortly"
            )
        groups.extend(shard.coordinator.list_groups(body.states_filter, body.types_filter))
    return ListGroupsResponse(groups=groups)


def on_error(
    _body: ListGroupsRequest, code: ErrorCode, _message: str | None, _version: int
) -> ListGroupsResponse:
    """An error and no groups."""
    return ListGroupsResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.LIST_GROUPS, 0, 5, handle)
