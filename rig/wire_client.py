"""One blocking connection that speaks Kafka's protocol message by message, or byte by byte."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from ottla.wire.frames import decode_response, encode_request
from ottla.wire.notation import Message
from ottla.wire.parts import FileRegion
from rig.probe import connect, receive_frame


class WireClient:
    """`call` sends a message and gives its response; `send` sends any bytes."""

    def __init__(
        self, port: int, timeout_s: float = 60.0, client_id: str = "rig", from_host: str = ""
    ) -> None:
        self.socket = connect(port, timeout_s, from_host)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    def frame(self, message: Message, version: int) -> bytes:
        """The bytes of a request, its size included."""
        self._correlation_id += 1
        parts = encode_request(message, version, self._correlation_id, self._client_id)
        return b"".join(bytes(part) for part in parts if not isinstance(part, FileRegion))

    def call(self, message: Message, version: int) -> Any:
        """Send a request and give its response."""
        self.socket.sendall(self.frame(message, version))
        return self.response(type(message).__api_key__, version)

    def response(self, api_key: int, version: int) -> Any:
        """The next response, of a request of this API and version."""
        correlation_id, response = decode_response(api_key, version, receive_frame(self.socket))
        assert correlation_id == self._correlation_id
        return response

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def closed_by_peer(self) -> bool:
        """Whether the broker closes without another byte; fails by timeout if it does neither."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def sized(body: bytes) -> bytes:
    """A frame of these bytes."""
    return struct.pack(">i", len(body)) + body


def reset(client: socket.socket) -> None:
    """Close a connection by RST, as a program that dies does."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
