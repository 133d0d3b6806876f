"""One connection from this broker to another: requests go out in order, answers come in order.

Many requests may be on their way. An answer larger than the inbox is received straight into the
buffer that its records are read from, which nobody overwrites. Whatever fails ends the
connection: it is never reopened, retries are for others to decide.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.frame_cutter import FrameCutter
from ottla.wire.api import API, ApiKey
from ottla.wire.errors import WireError
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.notation import Message

# Given the response, whose type follows from the request, or the OttlaError in its place.
OnAnswer = Callable[[Any], None]

# A broker may send so much that the other has not taken yet; a request beyond it is refused.
_UNSENT_BYTES_MAX = 64 << 20
RESPONSE_BYTES_MAX = 1 << 30


class _Pending(NamedTuple):
    """A request on its way."""

    correlation_id: int
    key: ApiKey
    version: int
    deadline_s: float
    on_answer: OnAnswer


class PeerConnection(asyncio.BufferedProtocol):
    """The protocol object of one connection; a `Dialer` connects it.

    `name` is what messages to people call the other end. `on_lost` is called once, with why, when
    the connection ends otherwise than by `close`, and after the requests on their way were told.
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
        self._client_id = client_id
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: deque[_Pending] = deque()
        self._next_correlation_id = 0
        self._cutter = FrameCutter(response_bytes_max, self._on_frame, self._on_bad_size)
        self._watchdog: asyncio.TimerHandle | None = None
        self._failure: OttlaError | None = None

    # -- what others call

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._failure is None

    @property
    def is_closed(self) -> bool:
        """Whether it was open, or was to be, and is no more."""
        return self._failure is not None

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._pending)

    # Hot: once per follower's fetch.
    def send(
        self, message: Message, on_answer: OnAnswer, *, timeout_ms: int, version: int | None = None
    ) -> None:
        """Send a request; `on_answer` is called once, later, with its response or an OttlaError.

        `version` None is the highest we know. Without an answer after `timeout_ms` the connection
        ends. Raises OttlaError, and does not call, where nothing can be sent.
        """
        transport = self._sendable()
        key = ApiKey(type(message).__api_key__)
        if version is None:
            version = API[key].max_version
        correlation_id = self._next_correlation_id
        parts = encode_request(message, version, correlation_id, self._client_id)
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        deadline_s = self._loop.time() + timeout_ms / 1000
        self._pending.append(_Pending(correlation_id, key, version, deadline_s, on_answer))
        self._watch(deadline_s)
        transport.writelines(cast("list[bytes]", parts))

    async def request(
        self, message: Message, *, timeout_ms: int, version: int | None = None
    ) -> Any:
        """Send a request and return its response. Raises OttlaError; see `send`."""
        answered: asyncio.Future[Any] = self._loop.create_future()

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
        """Close now; requests on their way fail."""
        self._end(self._error(ErrorCode.NETWORK_EXCEPTION, "this broker closed the connection"))

    # -- asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods, not the base class.
        self._transport = cast("asyncio.Transport", transport)
        if self._failure is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        why = f"the connection broke ({exc})" if exc else "it closed the connection"
        error = self._error(ErrorCode.NETWORK_EXCEPTION, f"{why}; its log may say why")
        error.__cause__ = exc
        self._lose(error)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._cutter.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._cutter.buffer_updated(nbytes)

    # -- receiving

    def _on_bad_size(self, size: int, _seen: bytes) -> None:
        self._break(f"it sent an answer of {size} bytes, which is no size of one")

    def _on_frame(self, frame: memoryview) -> None:
        if not self._pending:
            self._break("it sent an answer that nobody asked for")
            return
        pending = self._pending[0]
        try:
            correlation_id, message = decode_response(pending.key, pending.version, frame)
        except WireError as error:
            self._break(f"its answer to {pending.key.name} cannot be read: {error}")
            return
        if correlation_id != pending.correlation_id:
            self._break(f"it answered request {correlation_id} before {pending.correlation_id}")
            return
        self._pending.popleft()
        pending.on_answer(message)

    # -- deadlines

    def _watch(self, deadline_s: float) -> None:
        """Wake up at the deadline, unless something is due earlier."""
        if self._watchdog is not None:
            if self._watchdog.when() <= deadline_s:
                return
            self._watchdog.cancel()
        self._watchdog = self._loop.call_at(deadline_s, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._watchdog = None
        if not self._pending:
            return
        first = min(self._pending, key=lambda pending: pending.deadline_s)
        if first.deadline_s <= self._loop.time():
            self._lose(
                self._error(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"it did not answer {first.key.name} in time; it is overloaded, stopped, or "
                    "behind a network that drops packets",
                )
            )
            return
        self._watch(first.deadline_s)

    # -- ending

    def _sendable(self) -> asyncio.Transport:
        if self._failure is not None:
            raise _again(self._failure)
        if self._transport is None:
            raise self._error(ErrorCode.NETWORK_EXCEPTION, "it is not connected yet")
        if self._transport.get_write_buffer_size() > _UNSENT_BYTES_MAX:
            raise self._error(
                ErrorCode.NETWORK_EXCEPTION, "it does not read what it is sent; is it stopped?"
            )
        return self._transport

    def _error(self, code: ErrorCode, why: str) -> OttlaError:
        return OttlaError(code, f"{self.name}: {why}")

    def _break(self, why: str) -> None:
        """End a connection on which nonsense came."""
        remedy = "is the port another program's, or do the two run different releases?"
        self._lose(self._error(ErrorCode.NETWORK_EXCEPTION, f"{why}; {remedy}"))

    def _lose(self, error: OttlaError) -> None:
        if self._failure is None:
            self._end(error)
            if self.on_lost is not None:
                self.on_lost(error)

    def _end(self, error: OttlaError) -> None:
        if self._failure is not None:
            return
        self._failure = error
        self._cutter.stop()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        if self._transport is not None:
            self._transport.abort()
        while self._pending:
            self._pending.popleft().on_answer(error)


def _again(error: OttlaError) -> OttlaError:
    """The same error for one more who waits: each has a traceback of its own."""
    return OttlaError(error.code, error.message)
