"""Receivers of a command's answer: a response, a part of a response, or a coroutine."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.check import OnError
from ottla.broker.requests.request import RequestContext


class GroupAnswer(Protocol):
    """Receives the answer to a command. Exactly one of `give` and `fail` is called, once."""

    request: RequestContext

    # The type of the answer depends on the command.
    def give(self, message: Any) -> None: ...

    def fail(self, code: ErrorCode) -> None: ...


class WholeAnswer:
    """An answer that is the whole response."""

    __slots__ = ("_body", "_on_error", "request")

    def __init__(self, request: RequestContext, body: Any, on_error: OnError) -> None:
        self.request = request
        self._body = body
        self._on_error = on_error

    def give(self, message: Any) -> None:
        self.request.reply(message)

    def fail(self, code: ErrorCode) -> None:
        self.request.reply(self._on_error(self._body, code, None, self.request.version))


class AwaitedAnswer:
    """An answer that sets the result of `future`; a failure sets its exception, an OttlaError."""

    __slots__ = ("future", "request")

    def __init__(self, request: RequestContext) -> None:
        self.request = request
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def give(self, message: Any) -> None:
        if not self.future.done():
            self.future.set_result(message)

    def fail(self, code: ErrorCode) -> None:
        if not self.future.done():
            self.future.set_exception(
                OttlaError(code, "the group's coordinator gave up; ask again")
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

    def part(self, index: int, failed: Callable[[ErrorCode], Any]) -> "PartAnswer":
        """Return a ticket for part `index`; `failed` converts an error code to the part."""
        return PartAnswer(self, index, failed)

    def put(self, index: int, part: Any) -> None:
        """Set part `index`."""
        self._parts[index] = part
        self._missing -= 1
        if self._missing == 0:
            self.request.reply(self._build(self._parts))


class PartAnswer:
    """An answer that is one part of a response."""

    __slots__ = ("_failed", "_index", "_response", "request")

    def __init__(
        self, response: PartedResponse, index: int, failed: Callable[[ErrorCode], Any]
    ) -> None:
        self.request = response.request
        self._response = response
        self._index = index
        self._failed = failed

    def give(self, message: Any) -> None:
        self._response.put(self._index, message)

    def fail(self, code: ErrorCode) -> None:
        self._response.put(self._index, self._failed(code))
