"""A blocking connection for tasks that read in a straight line: no loop, no threads."""

import socket
from struct import Struct
from typing import Any, Self, TypeVar

from ottla import __version__
from ottla.base.errors import ErrorCode
from ottla.client.addresses import Address
from ottla.client.errors import ConnectionFailed, RequestTimedOut, check, connection_refused
from ottla.client.versions import key_of, negotiate, version_for
from ottla.wire.api import API, ApiKey
from ottla.wire.frames import decode_response, encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.notation import Message

Response = TypeVar("Response")

_SIZE = Struct(">i")
_CODE = Struct(">h")


class BlockingConnection:
    """One negotiated connection. Requests may be sent ahead; answers come in their order.

    Raises ConnectionFailed and RequestTimedOut, after which it is of no further use.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_s: float,
        *,
        advertised_by: str | None = None,
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._next_correlation_id = 0
        self._sent: list[tuple[ApiKey, int]] = []
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except OSError as error:
            why = error.strerror or str(error)
            raise connection_refused(*address, why, advertised_by=advertised_by) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.versions = self._negotiate()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _negotiate(self) -> dict[ApiKey, int]:
        request = ApiVersionsRequest(
            client_software_name="ottla", client_software_version=__version__
        )
        self._send(request, ApiKey.API_VERSIONS, API[ApiKey.API_VERSIONS].max_version)
        answer: ApiVersionsResponse = self.receive()
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            self._send(ApiVersionsRequest(), ApiKey.API_VERSIONS, 0)
            answer = self.receive()
        check(answer.error_code, "tell its versions")
        return negotiate(answer.api_keys)

    def version(self, key: ApiKey) -> int:
        """The version agreed with this broker. Raises UnsupportedByBroker."""
        return version_for(self.versions, key, str(self.address))

    def ask(self, message: Message, response_type: type[Response]) -> Response:
        """Send `message` and wait for its answer. Nothing else may be on its way."""
        assert not self._sent
        self.send(message)
        answer = self.receive()
        assert isinstance(answer, response_type)
        return answer

    def send(self, message: Message) -> None:
        """Send `message`; `receive` gives its answer later."""
        key = key_of(message)
        self._send(message, key, self.version(key))

    def _send(self, message: Message, key: ApiKey, version: int) -> None:
        number = self._next_correlation_id
        self._next_correlation_id = (number + 1) & 0x7FFFFFFF
        parts = encode_request(message, version, number, self._client_id)
        try:
            self._socket.sendall(b"".join(parts))  # type: ignore[arg-type]  # No file regions.
        except OSError as error:
            raise self._broken(error) from None
        self._sent.append((key, version))

    def receive(self) -> Any:
        """The next answer. Records in it are views of the buffer it was received into."""
        key, version = self._sent.pop(0)
        size_bytes = bytearray(4)
        self._fill(memoryview(size_bytes))
        (size,) = _SIZE.unpack(size_bytes)
        if not 4 <= size <= 1 << 30:
            raise ConnectionFailed(
                f"{self.address} does not speak the Kafka protocol (it sent {bytes(size_bytes)!r});"
                " check the port, and whether that listener wants TLS"
            )
        frame = bytearray(size)
        self._fill(memoryview(frame))
        if key is ApiKey.API_VERSIONS and size >= 6:
            (code,) = _CODE.unpack_from(frame, 4)
            version = 0 if code == ErrorCode.UNSUPPORTED_VERSION else version
        return decode_response(key, version, frame)[1]

    def _fill(self, view: memoryview) -> None:
        while len(view):
            try:
                count = self._socket.recv_into(view)
            except OSError as error:
                raise self._broken(error) from None
            if count == 0:
                raise ConnectionFailed(
                    f"{self.address} closed the connection; the broker stopped, or it refused "
                    "what it was sent (its log says why)"
                )
            view = view[count:]

    def _broken(self, error: OSError) -> ConnectionFailed | RequestTimedOut:
        if isinstance(error, TimeoutError):
            return RequestTimedOut(
                f"{self.address} did not answer in time; the broker is overloaded or stopped"
            )
        return ConnectionFailed(f"the connection to {self.address} broke ({error})")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
