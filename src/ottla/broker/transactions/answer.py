"""Implements `coordinating.Ticket` for transactions: the answer goes to a function."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.requests.request import RequestContext


class TransactionAnswer:
    """Calls `on_answer` with the answer of a command; `failed` turns an error into one."""

    __slots__ = ("_failed", "_on_answer")

    # The answer's type depends on the command.
    def __init__(
        self, on_answer: Callable[[Any], None], failed: Callable[[ErrorCode], Any]
    ) -> None:
        self._on_answer = on_answer
        self._failed = failed

    def give(self, message: Any) -> None:
        self._on_answer(message)

    def fail(self, code: ErrorCode) -> None:
        self._on_answer(self._failed(code))


def reply_with(
    request: RequestContext, build: Callable[[Any], Any], failed: Callable[[ErrorCode], Any]
) -> TransactionAnswer:
    """A ticket whose answer is the request's response, built by `build`."""
    return TransactionAnswer(lambda message: request.reply(build(message)), failed)


def as_version_knows(code: ErrorCode, version: int, *, fenced_from: int) -> ErrorCode:
    """The code, with PRODUCER_FENCED as INVALID_PRODUCER_EPOCH before `fenced_from` (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
