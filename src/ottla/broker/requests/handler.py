"""What a file in `handlers/` exports: which API it serves, which versions, and the function."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.wire.api import ApiKey


class NoAnswer:
    """The type of NO_ANSWER."""


# Returned by a handler whose request gets no answer at all (Produce with acks=0).
NO_ANSWER = NoAnswer()

# The messages of an API are known to its own file only; the table mixes them all, hence Any.
# `on_error(body, code, message, version)` gives the response that reports a failed request.
OnError = Callable[[Any, ErrorCode, str | None, int], Any]


@dataclass(frozen=True, slots=True)
class Handler:
    """One API, served from `min_version` to `max_version`, both included.

    `handle(broker, request, body)` returns the response, None if `request.reply` gives it later,
    or is a coroutine function, for rare calls that wait for the store.
    """

    api_key: ApiKey
    min_version: int
    max_version: int
    handle: Callable[[Any, Any, Any], Any]

    @property
    def is_coroutine(self) -> bool:
        return inspect.iscoroutinefunction(self.handle)
