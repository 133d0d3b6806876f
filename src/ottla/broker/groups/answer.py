"""How a waiting request gets its answer, alone or as one part of many."""

from collections.abc import Callable
from typing import Any, Protocol

from ottla.base.errors import ErrorCode
from ottla.broker.requests.handler import OnError
from ottla.broker.requests.request import RequestContext


class Answer(Protocol):
    """Somebody who waits. Exactly one of the two is called, once."""

    request: RequestContext

    # What the answer is depends on the command.
    def give(self, message: Any) -> None: ...

    def fail(self, code: ErrorCode) -> None: ...


class WholeAnswer:
    """The answer is the response."""

    __slots__ = ("_body", "_on_error", "request")

    def __init__(self, request: RequestContext, body: Any, on_error: OnError) -> None:
        self.request = request
        self._body = body
        self._on_error = on_error

    def give(self, message: Any) -> None:
        self.request.reply(message)

    def fail(self, code: ErrorCode) -> None:
        self.request.reply(self._on_error(self._body, code, None, self.request.version))


class Gathering:
    """A response of many parts, sent when the last one is there."""

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
        """The place of part `index`; `failed` makes the part that tells of an error."""
        return PartAnswer(self, index, failed)

    def put(self, index: int, part: Any) -> None:
        """Part `index` is there."""
        self._parts[index] = part
        self._missing -= 1
        if self._missing == 0:
            self.request.reply(self._build(self._parts))


class PartAnswer:
    """The answer is one part of a response."""

    __slots__ = ("_failed", "_gathering", "_index", "request")

    def __init__(
        self, gathering: Gathering, index: int, failed: Callable[[ErrorCode], Any]
    ) -> None:
        self.request = gathering.request
        self._gathering = gathering
        self._index = index
        self._failed = failed

    def give(self, message: Any) -> None:
        self._gathering.put(self._index, message)

    def fail(self, code: ErrorCode) -> None:
        self._gathering.put(self._index, self._failed(code))
