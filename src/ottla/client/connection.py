"""One connection to one broker: requests go out in order, answers come back in order.

Frames are cut out of the stream without asyncio's stream readers: a large answer is received
straight into the buffer that its records are later read from.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple, TypeVar, cast

from ottla import __version__
from ottla.base.errors import ErrorCode
from ottla.client.addresses import Address
from ottla.client.errors import (
    ClientError,
    ConnectionFailed,
    RequestTimedOut,
    check,
    connection_refused,
)
from ottla.client.versions import key_of, negotiate, version_for
from ottla.network.frame_cutter import FrameCutter
from ottla.wire.api import API, ApiKey
from ottla.wire.errors import WireError
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.notation import Message

Response = TypeVar("Response")

_CODE = Struct(">h")
# A larger size is not a Kafka answer but another protocol's bytes.
_FRAME_BYTES_MAX = 1 << 30


class _Pending(NamedTuple):
    """A request on its way."""

    correlation_id: int
    key: ApiKey
    version: int
    deadline_s: float
    answer: "asyncio.Future[Any]"


class Connection(asyncio.BufferedProtocol):
    """A negotiated connection. Open it with `connect`; it is never reopened.

    Deliberately does not retry and does not know topics: `Cluster` does.
    """

    def __init__(self, address: Address, client_id: str) -> None:
        self.address = address
        self.versions: dict[ApiKey, int] = {}
        # What the cluster has switched on, by name (KIP-584).
        self.features: dict[str, int] = {}
        self._client_id = client_id
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: deque[_Pending] = deque()
        self._next_correlation_id = 0
        self._cutter = FrameCutter(_FRAME_BYTES_MAX, self._on_frame, self._on_bad_size)
        self._watchdog: asyncio.TimerHandle | None = None
        self._failure: ClientError | None = None
        # False while the system takes no more bytes: what is sent then fills our memory.
        self.is_writable = True
        self._when_writable: list[Callable[[], None]] = []

    # -- what others call

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._failure is None

    @property
    def in_flight(self) -> int:
        """Requests sent and not yet answered."""
        return len(self._pending)

    def version(self, key: ApiKey) -> int:
        """The version agreed with this broker. Raises UnsupportedByBroker."""
        return version_for(self.versions, key, str(self.address))

    def submit(
        self, message: Message, timeout_s: float, at_most: int | None = None
    ) -> "asyncio.Future[Any]":
        """Send `message` now and return its answer to come.

        `at_most` is a version not to go beyond, where a later one means something else. The future
        fails with ConnectionFailed or RequestTimedOut; either closes the connection.
        """
        key = key_of(message)
        version = self.version(key)
        if at_most is not None:
            version = min(version, at_most)
        return self._submit(message, key, version, timeout_s)

    def send_unanswered(self, message: Message) -> None:
        """Send a request that has no answer (Produce with acks 0)."""
        key = key_of(message)
        transport = self._open_transport()
        parts = encode_request(message, self.version(key), self._correlation(), self._client_id)
        transport.writelines(cast("list[bytes]", parts))

    async def request(
        self,
        message: Message,
        response_type: type[Response],
        timeout_s: float,
        at_most: int | None = None,
    ) -> Response:
        """Send `message` and wait for its answer, which is of `response_type`."""
        answer = await self.submit(message, timeout_s, at_most)
        assert isinstance(answer, response_type)
        return answer

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the system takes bytes again."""
        self._when_writable.append(callback)

    def close(self, why: ClientError | None = None) -> None:
        """Close now; requests in flight fail with `why`."""
        if self._failure is None:
            self._failure = why or ConnectionFailed(f"the connection to {self.address} was closed")
        self._cutter.stop()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        if self._transport is not None:
            self._transport.abort()
        while self._pending:
            _fail(self._pending.popleft().answer, self._failure)

    # -- sending

    def _open_transport(self) -> asyncio.Transport:
        if self._transport is None or self._failure is not None:
            raise self._failure or ConnectionFailed(f"not connected to {self.address}")
        return self._transport

    def _correlation(self) -> int:
        number = self._next_correlation_id
        self._next_correlation_id = (number + 1) & 0x7FFFFFFF
        return number

    def _submit(
        self, message: Message, key: ApiKey, version: int, timeout_s: float
    ) -> "asyncio.Future[Any]":
        transport = self._open_transport()
        correlation_id = self._correlation()
        parts = encode_request(message, version, correlation_id, self._client_id)
        answer = self._loop.create_future()
        deadline_s = self._loop.time() + timeout_s
        self._pending.append(_Pending(correlation_id, key, version, deadline_s, answer))
        if self._watchdog is None:
            self._watchdog = self._loop.call_at(deadline_s, self._check_deadlines)
        transport.writelines(cast("list[bytes]", parts))
        return answer

    def _check_deadlines(self) -> None:
        self._watchdog = None
        if not self._pending:
            return
        now_s = self._loop.time()
        first = min(self._pending, key=lambda pending: pending.deadline_s)
        if first.deadline_s <= now_s:
            self.close(
                RequestTimedOut(
                    f"{self.address} did not answer {first.key.name} in time; the broker is "
                    "overloaded, stopped, or behind a network that drops packets"
                )
            )
            return
        self._watchdog = self._loop.call_at(first.deadline_s, self._check_deadlines)

    # -- asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f" ({exc})" if exc else ""
        self.close(
            ConnectionFailed(
                f"{self.address} closed the connection{reason}; the broker stopped, or it refused "
                "what it was sent (its log says why)"
            )
        )
        self._transport = None

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        waiting, self._when_writable = self._when_writable, []
        for callback in waiting:
            callback()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (asyncio's name)
        return self._cutter.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._cutter.buffer_updated(nbytes)

    def _on_bad_size(self, _size: int, seen: bytes) -> None:
        self.close(self._not_kafka(seen))

    def _not_kafka(self, seen: bytes) -> ConnectionFailed:
        what = "HTTP" if seen.startswith(b"HTTP") else "TLS" if seen[:1] in b"\x15\x16" else "other"
        return ConnectionFailed(
            f"{self.address} speaks {what} bytes ({seen!r}), not the Kafka protocol; "
            "check the port, and whether that listener wants TLS"
        )

    def _on_frame(self, frame: memoryview) -> None:
        if not self._pending:
            self.close(ConnectionFailed(f"{self.address} sent an answer that nobody asked for"))
            return
        pending = self._pending.popleft()
        version = pending.version
        if pending.key is ApiKey.API_VERSIONS and len(frame) >= 6:
            # An unknown ApiVersions version is answered in version 0 (KIP-511).
            (code,) = _CODE.unpack_from(frame, 4)
            version = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
        try:
            correlation_id, message = decode_response(pending.key, version, frame)
        except WireError as error:
            failure = ConnectionFailed(
                f"{self.address} sent a {pending.key.name} answer that cannot be read: {error}"
            )
            _fail(pending.answer, failure)
            self.close(failure)
            return
        if correlation_id != pending.correlation_id:
            failure = ConnectionFailed(f"{self.address} answered out of order")
            _fail(pending.answer, failure)
            self.close(failure)
        elif not pending.answer.cancelled():
            pending.answer.set_result(message)

    # -- opening

    async def negotiate(self, timeout_s: float) -> None:
        """Ask which versions the broker serves; falls back to version 0 where it must."""
        request = ApiVersionsRequest(
            client_software_name="ottla", client_software_version=__version__
        )
        version = API[ApiKey.API_VERSIONS].max_version
        answer: ApiVersionsResponse = await self._submit(
            request, ApiKey.API_VERSIONS, version, timeout_s
        )
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = await self._submit(ApiVersionsRequest(), ApiKey.API_VERSIONS, 0, timeout_s)
        check(answer.error_code, "tell its versions")
        self.versions = negotiate(answer.api_keys)
        self.features = {
            feature.name: feature.max_version_level for feature in answer.finalized_features
        }


def _fail(answer: "asyncio.Future[Any]", failure: ClientError) -> None:
    if not answer.done():
        answer.set_exception(failure)


async def connect(
    address: Address, client_id: str, timeout_s: float, *, advertised_by: str | None = None
) -> Connection:
    """Open a connection and agree on versions. Raises ConnectionFailed with what to check."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                lambda: Connection(address, client_id), address.host, address.port
            )
    except TimeoutError:
        why = f"no answer within {timeout_s:g} s"
        raise connection_refused(*address, why, advertised_by=advertised_by) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise connection_refused(*address, why, advertised_by=advertised_by) from None
    try:
        await connection.negotiate(timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection
