"""Detects requests that block the event loop for a long time; logs and counts them.

During such a request no other request is served. Each step of a coroutine handler is measured
separately.
"""

import logging
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, TypeVar

from ottla.base.log_lines import Seldom
from ottla.network.connection import Connection
from ottla.wire.api import key_name

_log = logging.getLogger(__name__)

T = TypeVar("T")

STALL_MS: Final = 100
# After this time clients and other brokers may consider this broker dead.
_GRAVE_MS: Final = 1_000
_INTERVAL_MS: Final = 10_000


class Stalls:
    """Counts the requests that blocked the broker's event loop for longer than STALL_MS."""

    def __init__(self, monotonic_ms: Callable[[], int]) -> None:
        self.monotonic_ms = monotonic_ms
        self.count = 0
        self.longest_ms = 0
        self._seldom = Seldom(_INTERVAL_MS)

    def note(self, held_ms: int, connection: Connection, api: int, size: int) -> None:
        """Count a request of `size` bytes; log it at most once in ten seconds per user and API."""
        self.count += 1
        self.longest_ms = max(self.longest_ms, held_ms)
        principal = connection.principal
        if self._seldom.admit((api, principal), self.monotonic_ms()) is None:
            return
        _log.log(
            logging.WARNING if held_ms >= _GRAVE_MS else logging.INFO,
            "%s of %s from %s:%d, %d bytes, held the event loop for %d ms, in which no other"
            " request was served (such requests since the start: %d, the longest %d ms): have the"
            " client send smaller ones, or bound it by the quota request_percentage"
            " (`ottla quota alter`)",
            key_name(api),
            principal,
            connection.peer_host,
            connection.peer_port,
            size,
            held_ms,
            self.count,
            self.longest_ms,
        )

    @types.coroutine
    def watched(
        self, work: Coroutine[Any, Any, T], connection: Connection, api: int, size: int
    ) -> Generator[Any, Any, T]:
        """Run the coroutine of a request, and note each step that blocks the loop for long."""
        go_on: Callable[[Any], Any] = work.send
        given: Any = None
        while True:
            began_ms = self.monotonic_ms()
            try:
                waits_for = go_on(given)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                held_ms = self.monotonic_ms() - began_ms
                if held_ms >= STALL_MS:
                    self.note(held_ms, connection, api, size)
            try:
                given = yield waits_for
                go_on = work.send
            except BaseException as error:  # noqa: BLE001  # The work gets it, cancellation too.
                go_on, given = work.throw, error
