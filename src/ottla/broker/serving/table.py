"""Maps each API key to its handler, ready to be called."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ottla.broker.requests.check import OnError
from ottla.broker.requests.handler import Api, Handler
from ottla.broker.requests.needs import brokers_only
from ottla.wire.messages.api_versions import ApiVersion


class Served(NamedTuple):
    """A handler, ready to be called."""

    api: Api[Any, Any]
    min_version: int
    max_version: int
    handle: Callable[[Any, Any], Any]
    on_error: OnError
    brokers_only: bool


def table_of(handlers: Iterable[Handler]) -> dict[int, Served]:
    """Return the handlers by API key; each API must have exactly one."""
    table: dict[int, Served] = {}
    for handler in handlers:
        api = handler.api
        assert api.key not in table, f"{api.name} has two handlers"
        table[api.key] = Served(
            api,
            *api.versions,
            handler.handle,
            handler.on_error,
            api.needs is brokers_only,
        )
    return table


def api_ranges(handlers: Iterable[Handler | type[Handler]]) -> list[ApiVersion]:
    """Return the APIs that ApiVersions lists, ordered by key.

    APIs with keys from FIRST_PRIVATE_KEY on are Ottla's own.
    """
    ranges = [
        ApiVersion(api_key=api.key, min_version=api.versions.min, max_version=api.versions.max)
        for api in (handler.api for handler in handlers)
        if not api.between_brokers
    ]
    return sorted(ranges, key=lambda each: each.api_key)
