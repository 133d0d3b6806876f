"""One connection from this broker to another: a shell over `network.exchange` with callbacks.

Many requests may be in flight. Any failure ends the connection, and it is never reopened; its
user decides about retries.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.exchange import RESPONSE_BYTES_MAX, Exchange
from ottla.network.loop_exchange import LoopExchange
from ottla.wire.notation import Message

# Called with the response, whose type follows from the request, or with the OttlaError instead.
OnAnswer = Callable[[Any], None]

# A request is refused while more unsent bytes than this wait for the other broker.
_UNSENT_BYTES_MAX = 64 << 20


class PeerConnection(asyncio.BufferedProtocol):
    """The protocol object of one connection; a `Dialer` connects it.

    `name` is the other broker's name in messages to users. `on_lost` is called once, with the
    error, when the connection ends for any reason except `close`. The requests in flight receive
    the error before that.
    """

    def __init__(
        self,
        name: str,
        client_id: str,
        *,
        response_bytes_max: int = RESPONSE_BYTES_MAX,
        on_lost: Callable[[OttlaError], None] | None = None,
    ) -> None:
        self.name = name
        self.on_lost = on_lost
        self._exchange: Exchange[OnAnswer] = Exchange(
            name, client_id, response_bytes_max=response_bytes_max
        )
        self._shell = LoopExchange(self._exchange, self._lose)
        self._failure: OttlaError | None = None

    # -- called by users

    @property
    def is_open(self) -> bool:
        return self._shell.is_open

    @property
    def is_closed(self) -> bool:
        """Return whether the connection has ended; it may never have been open."""
        return self._failure is not None

    @property
    def in_flight(self) -> int:
        """Return the number of requests sent and not yet answered."""
        return self._exchange.in_flight

    # Hot: once per follower's fetch.
    def send(
        self, message: Message, on_answer: OnAnswer, *, timeout_ms: int, version: int | None = None
    ) -> None:
        """Send a request; `on_answer` is called once, later, with its response or an OttlaError.

        `version` None means the highest known version. The connection ends if there is no answer
        within `timeout_ms`. If nothing can be sent, raises OttlaError without calling `on_answer`.
        """
        self._require_sendable()
        if version is None:
            version = type(message).__versions__[1]
        self._shell.send(message, version, timeout_ms / 1000, on_answer)

    async def request(
        self, message: Message, *, timeout_ms: int, version: int | None = None
    ) -> Any:
        """Send a request and return its response. Raises OttlaError; see `send`."""
        answered: asyncio.Future[Any] = self._shell.loop.create_future()

        def on_answer(answer: Any) -> None:
            if answered.done():
                return
            if isinstance(answer, OttlaError):
                answered.set_exception(_again(answer))
            else:
                answered.set_result(answer)

        self.send(message, on_answer, timeout_ms=timeout_ms, version=version)
        return await answered

    def close(self) -> None:
        """Close now; the requests in flight fail."""
        self._exchange.closed()
        self._end()

    # -- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._shell.made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._exchange.lost(exc)
        self._lose(exc)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._exchange.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        answers = self._exchange.receive(nbytes)
        # A callback may close the connection, which removes the waiters of the remaining answers.
        while answers:
            on_answer, message = answers.popleft()
            on_answer(message)
        if self._exchange.failure is not None:
            self._lose()

    # -- ending

    def _require_sendable(self) -> None:
        if self._failure is not None:
            raise _again(self._failure)
        transport = self._shell.transport
        if transport is None:
            raise self._error(ErrorCode.NETWORK_EXCEPTION, "it is not connected yet")
        if transport.get_write_buffer_size() > _UNSENT_BYTES_MAX:
            raise self._error(
                ErrorCode.NETWORK_EXCEPTION, "it does not read what it is sent; is it stopped?"
            )

    def _error(self, code: ErrorCode, why: str) -> OttlaError:
        return OttlaError(code, f"{self.name}: {why}")

    def _lose(self, cause: Exception | None = None) -> None:
        """End because of the exchange's failure, and report it to `on_lost`."""
        if self._failure is None:
            error = self._end()
            error.__cause__ = cause
            if self.on_lost is not None:
                self.on_lost(error)

    def _end(self) -> OttlaError:
        if self._failure is not None:
            return self._failure
        assert self._exchange.failure is not None
        error = self._failure = OttlaError(*self._exchange.failure)
        for on_answer in self._shell.end():
            on_answer(error)
        return error


def _again(error: OttlaError) -> OttlaError:
    """Return an equal error for another caller, since each needs a traceback of its own."""
    return OttlaError(error.code, error.message)
