"""Tickets of group commands: each receives the answer for a response, or for a part of one."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.coordinators import Ticket
from ottla.broker.requests.check import OnError
from ottla.broker.requests.request import RequestContext


class GroupAnswer(Ticket):
    """A ticket that also has the request, whose client and version the coordinator needs."""

    __slots__ = ("request",)

    def __init__(
        self,
        request: RequestContext,
        give: Callable[[Any], None],
        failed: Callable[[ErrorCode], Any],
    ) -> None:
        super().__init__(give, failed)
        self.request = request


def whole_answer(
    request: RequestContext,
    body: Any,
    on_error: OnError,
    give: Callable[[Any], None] | None = None,
) -> GroupAnswer:
    """Return a ticket whose answer is the whole response; `give` (None: `reply`) receives it."""
    return GroupAnswer(
        request, give or request.reply, lambda code: on_error(body, code, None, request.version)
    )


class PartedResponse:
    """A response of `size` parts, built and sent when all parts are set."""

    def __init__(
        self, request: RequestContext, size: int, build: Callable[[list[Any]], Any]
    ) -> None:
        self.request = request
        self._parts: list[Any] = [None] * size
        self._missing = size
        self._build = build
        if size == 0:
            request.reply(build([]))

    def part(self, index: int, failed: Callable[[ErrorCode], Any]) -> GroupAnswer:
        """Return a ticket for part `index`; `failed` converts an error code to the part."""
        return GroupAnswer(self.request, partial(self.put, index), failed)

    def put(self, index: int, part: Any) -> None:
        """Set part `index`."""
        self._parts[index] = part
        self._missing -= 1
        if self._missing == 0:
            self.request.reply(self._build(self._parts))
