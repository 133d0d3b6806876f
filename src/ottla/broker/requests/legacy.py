"""Handlers that are still functions of the broker: each made an object of it."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.requests.handler import OnError
from ottla.wire.api import ApiKey


class LegacyHandler(NamedTuple):
    """A module's function with its versions."""

    api_key: ApiKey
    min_version: int
    max_version: int
    handle: Callable[[Any, Any, Any], Any]


def bound(name: str) -> tuple[LegacyHandler, Callable[[Any, Any, Any], Any], OnError]:
    """The handler in module `name`, its function, and its `on_error`."""
    module = importlib.import_module(f"ottla.broker.handlers.{name}")
    handler: LegacyHandler = module.HANDLER
    return handler, handler.handle, module.on_error
