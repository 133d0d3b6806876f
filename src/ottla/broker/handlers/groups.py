"""The handlers that list, describe and delete groups."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.groups import Groups
from ottla.broker.groups.rewinds import Rewinds, committed
from ottla.broker.requests.access import with_operations
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, described, each, named
from ottla.broker.requests.portions import in_portions, once
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
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def _needs(check: RequestCheck[ListGroupsRequest]) -> Amend[ListGroupsResponse] | None:
    """List all groups with DESCRIBE on the cluster; otherwise only groups with DESCRIBE on them."""
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
    """ListGroups (16), versions 0-5: lists the groups that this broker coordinates.

    Filters by state from version 4 (KIP-518), by type from version 5 (KIP-848).
    """

    api = Api(ListGroupsRequest, ListGroupsResponse, Versions(0, 5), needs=_needs)

    groups: Groups

    def handle(self, _request: RequestContext, body: ListGroupsRequest) -> ListGroupsResponse:
        """Return the groups of all shards.

        If a shard is still loading, return an error, since its groups would be missing.
        """
        groups: list[ListedGroup] = []
        for shard in self.groups.shards():
            if shard.coordinator is None:
                raise OttlaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are loading; ask again shortly"
                )
            groups.extend(shard.coordinator.list_groups(body.states_filter, body.types_filter))
        return ListGroupsResponse(groups=groups)


@dataclass(slots=True, eq=False, repr=False)
class DescribeGroups(Handler):
    """DescribeGroups (15), versions 0-6: lists members and their assignments.

    Before version 6 an unknown group has the state Dead; from 6 on it is an error (KIP-1043).
    """

    api = Api(
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        Versions(0, 6),
        needs=described(lambda body: body.groups, lambda response: response.groups),
        portions=in_portions(lambda body: body.groups, lambda response: response.groups, most=64),
        once=once(lambda body: body.groups),
        on_error=lambda body, code, _message: DescribeGroupsResponse(
            groups=[_failed(group_id, code) for group_id in body.groups]
        ),
    )

    groups: Groups

    def handle(self, request: RequestContext, body: DescribeGroupsRequest) -> None:
        """Ask the coordinator of each group."""
        self.groups.run_each(
            request,
            body.groups,
            lambda group_id: partial(_describe, group_id),
            _failed,
            lambda groups: DescribeGroupsResponse(
                groups=with_operations(groups, asked=body.include_authorized_operations)
            ),
        )


def _describe(
    group_id: str, coordinator: GroupCoordinator, call: Call, _at: Moment
) -> GroupDecision:
    return coordinator.describe(call, group_id)


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)


def _changes(_body: DeleteGroupsRequest, response: DeleteGroupsResponse) -> Iterator[AdminChange]:
    """Return an audit event for each group."""
    for one in response.results:
        yield AdminChange((group_need(AclOperation.DELETE, one.group_id),), {}, one.error_code)


@dataclass(slots=True, eq=False, repr=False)
class DeleteGroups(Handler):
    """DeleteGroups (42), versions 0-2: deletes groups without members, and their offsets.

    For a share group, the state of its partitions is deleted first (KIP-932).
    """

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
    rewinds: Rewinds

    async def handle(
        self, request: RequestContext, body: DeleteGroupsRequest
    ) -> DeleteGroupsResponse:
        """Delete each group once, even if it is named twice."""
        names = list(dict.fromkeys(body.groups_names))
        codes = await asyncio.gather(*(self._delete(request, name) for name in names))
        return DeleteGroupsResponse(results=list(map(_result, names, codes)))

    async def _delete(self, request: RequestContext, group_id: str) -> ErrorCode:
        before: dict[TopicPartition, int | None] = {}

        def start(coordinator: GroupCoordinator, call: Call, at: Moment) -> GroupDecision:
            if group_id in coordinator.share:
                return coordinator.share.start_deleting(call, group_id, None, at)
            before.update(committed(coordinator, group_id, None))
            return coordinator.delete(call, group_id, at)

        try:
            answered: Allowed | ErrorCode = await self.groups.run_and_wait(request, group_id, start)
            if not isinstance(answered, Allowed):
                if answered is ErrorCode.NONE:
                    self.rewinds.note(request, group_id, before, dict.fromkeys(before))
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
