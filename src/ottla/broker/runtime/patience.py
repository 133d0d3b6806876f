"""Retries an action while the store is unavailable for a short time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.coordination.interface.store import StoreUnavailable

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1

T = TypeVar("T")


class StorePatience:
    """Retries each call for at most `limit_ms`."""

    def __init__(self, clock: Clock, limit_ms: int) -> None:
        self._clock = clock
        self._limit_ms = limit_ms

    async def ask(self, action: Callable[[], Awaitable[T]]) -> T:
        """Return the result of an idempotent `action`. Raises StoreUnavailable after the limit."""
        deadline_ms = self._clock.monotonic_ms() + self._limit_ms
        while True:
            try:
                return await action()
            except StoreUnavailable as error:
                if self._clock.monotonic_ms() >= deadline_ms:
                    raise
                _log.warning("the store does not answer, trying again: %s", error.message)
            await asyncio.sleep(_PAUSE_S)
