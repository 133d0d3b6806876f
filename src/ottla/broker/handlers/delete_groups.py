"""DeleteGroups (42), versions 0-2: deletes groups without members, and their offsets.

The state of a share group's partitions is deleted first (KIP-932).
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each, named
from ottla.broker.requests.portions import in_portions
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.group_state import GroupShareStates
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.share.groups import Allowed
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def _changes(_body: DeleteGroupsRequest, response: DeleteGroupsResponse) -> Iterator[AdminChange]:
    """Return an audit line for each group."""
    for one in response.results:
        yield AdminChange((group_need(AclOperation.DELETE, one.group_id),), {}, one.error_code)


@dataclass(slots=True, eq=False, repr=False)
class DeleteGroups(Handler):
    """Serves DeleteGroups; for share groups it also deletes the state of their partitions."""

    api = Api(
        DeleteGroupsRequest,
        DeleteGroupsResponse,
        Versions(0, 2),
        needs=each(
            lambda body: body.groups_names,
            lambda response: response.results,
            named(AclOperation.DELETE, AclResource.GROUP, str),
        ),
        changes=_changes,
        portions=in_portions(lambda body: body.groups_names, lambda response: response.results),
        on_error=lambda body, code, _message: DeleteGroupsResponse(
            results=[_result(name, code) for name in body.groups_names]
        ),
    )

    groups: Groups
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: DeleteGroupsRequest
    ) -> DeleteGroupsResponse:
        """Delete each group once, even if it is named twice."""
        names = list(dict.fromkeys(body.groups_names))
        codes = await asyncio.gather(*(self._delete(request, name) for name in names))
        return DeleteGroupsResponse(results=list(map(_result, names, codes)))

    async def _delete(self, request: RequestContext, group_id: str) -> ErrorCode:
        def start(coordinator: GroupCoordinator, call: Call, at: Moment) -> GroupDecision:
            if group_id in coordinator.share:
                return coordinator.share.start_deleting(call, group_id, None, at)
            return coordinator.delete(call, group_id, at)

        try:
            answered: Allowed | ErrorCode = await self.groups.run_and_wait(request, group_id, start)
            if not isinstance(answered, Allowed):
                return answered
            if answered.code is not ErrorCode.NONE:
                return answered.code
            deleted = await self.state.delete(request, group_id, answered.topics)
            for each in deleted.values():
                if each.code is not ErrorCode.NONE:
                    return ErrorCode.COORDINATOR_NOT_AVAILABLE
            code: ErrorCode = await self.groups.run_and_wait(
                request,
                group_id,
                lambda coordinator, call, at: coordinator.share.delete(call, group_id, at),
            )
        except OttlaError as error:
            return error.code
        return code


def _result(group_id: str, code: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=code)
