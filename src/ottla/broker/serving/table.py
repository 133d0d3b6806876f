"""The handlers of a broker by API, ready to be called."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ottla.broker.requests.handler import Handler, OnError, is_coroutine
from ottla.wire.api import API, BROKER_APIS, ApiKey
from ottla.wire.messages.api_versions import ApiVersion

# The handshake is how one becomes a proven broker.
PROVEN_ONLY = BROKER_APIS - {ApiKey.BROKER_HANDSHAKE}


class Served(NamedTuple):
    """A handler, ready to be called."""

    min_version: int
    max_version: int
    handle: Callable[[Any, Any], Any]
    request_type: Any
    on_error: OnError
    is_coroutine: bool
    brokers_only: bool


def table_of(handlers: Iterable[Handler]) -> dict[int, Served]:
    """The handlers by API key; each API has one."""
    table: dict[int, Served] = {}
    for handler in handlers:
        assert handler.api not in table, f"{handler.api.name} has two handlers"
        table[handler.api] = Served(
            *handler.versions,
            handler.handle,
            API[handler.api].request,
            handler.on_error,
            is_coroutine(handler),
            handler.api in PROVEN_ONLY,
        )
    return table


def api_ranges(handlers: Iterable[Handler | type[Handler]]) -> list[ApiVersion]:
    """The APIs that ApiVersions lists, by key; from FIRST_PRIVATE_KEY on, Ottla's own."""
    ranges = [
        ApiVersion(
            api_key=handler.api, min_version=handler.versions.min, max_version=handler.versions.max
        )
        for handler in handlers
        if handler.api not in BROKER_APIS
    ]
    return sorted(ranges, key=lambda each: each.api_key)
