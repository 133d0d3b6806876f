"""Runs an exchange on an event loop, with a transport and a timer for its deadlines.

The client's connection and a broker's connection to another one are asyncio protocols that use
it. Each passes answers and failures to its waiters in its own way.
"""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Generic, TypeVar, cast

from ottla.network.exchange import Exchange
from ottla.wire.notation import Message

Waiter = TypeVar("Waiter")


class LoopExchange(Generic[Waiter]):
    """The half of one connection that sends requests and closes.

    `on_failed` is called when a deadline has passed. It must call `end`, as is necessary after any
    failure.
    """

    __slots__ = (
        "_is_over",
        "_on_failed",
        "_timer",
        "_timer_s",
        "exchange",
        "loop",
        "transport",
    )

    def __init__(self, exchange: Exchange[Waiter], on_failed: Callable[[], None]) -> None:
        self.exchange = exchange
        self.loop = asyncio.get_running_loop()
        # None until the connection is made.
        self.transport: asyncio.Transport | None = None
        self._on_failed = on_failed
        self._is_over = False
        # Set for the earliest deadline; the request that has it may have been answered meanwhile.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = inf

    @property
    def is_open(self) -> bool:
        """Return whether requests can be sent."""
        return self.transport is not None and not self._is_over

    def made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport of the new connection; drop it if this object was closed before."""
        # uvloop's transports have these methods, but not the base class.
        self.transport = cast("asyncio.Transport", transport)
        if self._is_over:
            self.transport.abort()

    # -- sending

    # Hot: once per request, including the fetches of followers.
    def send(self, message: Message, version: int, timeout_s: float, waiter: Waiter) -> None:
        """Send a request; the connection fails if it is not answered in time."""
        assert self.transport is not None
        deadline_s = self.loop.time() + timeout_s
        parts = self.exchange.send(message, version, deadline_s, waiter)
        if deadline_s < self._timer_s:
            self._set_timer()
        self.transport.writelines(cast("list[bytes]", parts))

    def send_unanswered(self, message: Message, version: int) -> None:
        """Send a request that has no answer (Produce with acks 0)."""
        assert self.transport is not None
        parts = self.exchange.send_unanswered(message, version)
        self.transport.writelines(cast("list[bytes]", parts))

    # -- deadlines

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = self.exchange.next_deadline_s
        self._timer = self.loop.call_at(self._timer_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._timer_s = None, inf
        self.exchange.time_passed(self.loop.time())
        if self.exchange.failure is not None:
            self._on_failed()
        elif self.exchange.in_flight:
            self._set_timer()

    # -- ending

    def end(self) -> list[Waiter]:
        """End the connection after a failure; return the waiters, which the caller must fail."""
        assert not self._is_over
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.transport is not None:
            self.transport.abort()
        return self.exchange.take_unanswered()
