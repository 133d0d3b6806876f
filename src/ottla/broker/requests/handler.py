"""What serves one API: an object of the parts it uses, one file for each in `broker.handlers`."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey


class NoAnswer:
    """The type of NO_ANSWER."""


# Returned by a handler whose request gets no answer at all (Produce with acks=0).
NO_ANSWER = NoAnswer()

# The messages of an API are known to its own file only; the table mixes them all, hence Any.
# `on_error(body, code, message, version)` gives the response that reports a failed request.
OnError = Callable[[Any, ErrorCode, str | None, int], Any]


class Versions(NamedTuple):
    """The versions of an API that are served, both ends included."""

    min: int
    max: int


class Handler(ABC):
    """One API, served in `versions`.

    Subclasses are dataclasses whose fields are the parts of the broker that they use. They are not
    values: without comparison and freezing, a class takes a sixth of the time at import.
    """

    __slots__ = ()

    api: ClassVar[ApiKey]
    versions: ClassVar[Versions]

    @abstractmethod
    def handle(self, request: RequestContext, body: Any) -> Any:
        """Return the response, NO_ANSWER, or None where `request.reply` gives it later.

        A coroutine function where a rare call waits for the store. Raises OttlaError.
        """

    @staticmethod
    @abstractmethod
    def on_error(body: Any, code: ErrorCode, message: str | None, version: int) -> Any:
        """The response that reports the failed request `body`."""


def is_coroutine(handler: Handler) -> bool:
    """Whether `handle` is to be awaited."""
    return inspect.iscoroutinefunction(handler.handle)
