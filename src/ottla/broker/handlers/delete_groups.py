"""DeleteGroups (42), versions 0-2: forget groups without members, and their offsets."""

from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.groups.answer import Gathering
from ottla.broker.handler import Handler
from ottla.broker.request import RequestContext
from ottla.group.coordinator import Coordinator
from ottla.group.turn import Call, Decision, Moment
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: DeleteGroupsRequest) -> None:
    """Ask the coordinator of each group, of one that is named twice only once."""
    names = list(dict.fromkeys(body.groups_names))

    def build(codes: list[ErrorCode]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=name, error_code=code)
                for name, code in zip(names, codes, strict=True)
            ]
        )

    gathering = Gathering(request, len(names), build)
    for index, name in enumerate(names):
        broker.groups.try_run(name, gathering.part(index, _same), partial(_delete, name))


def on_error(
    body: DeleteGroupsRequest, code: ErrorCode, _message: str | None, _version: int
) -> DeleteGroupsResponse:
    """The same error for every group."""
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=name, error_code=code) for name in body.groups_names]
    )


def _same(code: ErrorCode) -> ErrorCode:
    return code


def _delete(group_id: str, coordinator: Coordinator, call: Call, at: Moment) -> Decision:
    return coordinator.delete(call, group_id, at)


HANDLER = Handler(ApiKey.DELETE_GROUPS, 0, 2, handle)
