"""Repeats an action while the store does not answer for a moment."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.coordination.store import StoreUnavailable

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1

T = TypeVar("T")


async def patiently(action: Callable[[], Awaitable[T]], clock: Clock, limit_ms: int) -> T:
    """The result of an idempotent `action`. Raises StoreUnavailable after `limit_ms`."""
    deadline_ms = clock.monotonic_ms() + limit_ms
    while True:
        try:
            return await action()
        except StoreUnavailable as error:
            if clock.monotonic_ms() >= deadline_ms:
                raise
            _log.warning("the store does not answer, trying again: %s", error.message)
        await asyncio.sleep(_PAUSE_S)
