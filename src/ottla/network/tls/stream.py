"""The server side of one TLS connection, between the loop's plain transport and a protocol.

To the plain transport it is a protocol, to the protocol of the connection it is a transport. The
steps of the handshake, whose signatures take up to milliseconds, run in a thread. Meanwhile the
socket is not read, so that only one thread at a time uses the TLS object.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, cast

# The most bytes of one receive; all connections of a listener share a buffer of this size.
RECEIVE_BYTES = 256 << 10
# The protocol pauses when this many encrypted bytes wait for the socket.
_WAITING_BYTES_MAX = 512 << 10
# How long a connection whose handshake failed stays open, and how much of it is read, so that the
# client can read the alert: a close with unread bytes would reset the connection.
_LINGER_S = 1.0
_LINGER_BYTES = 64 << 10


class TlsStream(asyncio.Transport, asyncio.BufferedProtocol):
    """One connection: `handshake`, then `begin`. Until `begin`, its creator must end it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: ssl.SSLContext,
        receive_buffer: memoryview,
    ) -> None:
        super().__init__()
        self._loop = loop
        self._context = context
        self._shared = receive_buffer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._raw: asyncio.Transport
        # None during the handshake.
        self._protocol: asyncio.BufferedProtocol | None = None
        # During the handshake: done when bytes have come, or the client has left.
        self._arrival: asyncio.Future[None] | None = None
        # Whether the client has closed its side, and whether the connection has ended.
        self._has_eof = self._is_lost = False
        self._is_closing = self._reading_paused = False
        # How many bytes may still come after a failed handshake; None if it has not failed.
        self._linger_bytes: int | None = None

    # -- the handshake

    async def handshake(self, threads: Executor) -> None:
        """Do the handshake; its steps run in `threads`.

        Raises ssl.SSLError, after the client could read why, or ConnectionError if it has left.
        """
        try:
            while not await self._is_shaken(threads):
                pass
        except ssl.SSLError:
            await self._linger()
            raise

    async def _is_shaken(self, threads: Executor) -> bool:
        """Wait for bytes of the client, and take the next step; return whether it was the last."""
        if not self._incoming.pending:
            await self._something()
        if not self._raw.is_closing():
            self._raw.pause_reading()
        try:
            await self._loop.run_in_executor(threads, self._step)
        except ssl.SSLError as error:
            self._send()
            if isinstance(error, ssl.SSLWantReadError):
                return False
            raise
        # A cancelled handshake sends nothing: the thread may still use the buffers.
        self._send()
        if self._is_lost:
            raise _left()
        return True

    def _step(self) -> None:
        # In a thread. The client may have left while other handshakes were ahead.
        if self._is_lost:
            raise _left()
        self._tls.do_handshake()

    async def _something(self) -> None:
        if self._has_eof or self._is_lost:
            raise _left()
        self._arrival = self._loop.create_future()
        if not self._raw.is_closing():
            self._raw.resume_reading()
        await self._arrival

    async def _linger(self) -> None:
        """Close the side of the broker after the alert, and read until the client has closed."""
        self._linger_bytes = _LINGER_BYTES
        with contextlib.suppress(OSError, TimeoutError):
            self._raw.write_eof()
            async with asyncio.timeout(_LINGER_S):
                while self._linger_bytes > 0:
                    await self._something()

    def begin(self, protocol: asyncio.BufferedProtocol) -> None:
        """After the handshake: make the connection of `protocol`, and serve what has come."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._decrypt()
        if self._has_eof:
            self.close()
        elif not self._reading_paused and not self._is_closing:
            self._raw.resume_reading()

    # -- called by the plain transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have these methods, but not the base class.
        self._raw = cast("asyncio.Transport", transport)
        self._raw.set_write_buffer_limits(_WAITING_BYTES_MAX)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = self._is_closing = True
        self._wake()
        if self._protocol is not None:
            self._protocol.connection_lost(exc)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._shared

    # Hot: once per receive.
    def buffer_updated(self, nbytes: int) -> None:
        if self._linger_bytes is not None:
            self._linger_bytes -= nbytes
            self._wake()
            return
        self._incoming.write(self._shared[:nbytes])
        if self._protocol is None:
            self._wake()
        else:
            self._decrypt()

    def eof_received(self) -> bool:
        self._has_eof = True
        self._wake()
        if self._protocol is not None:
            self.close()
        # The plain transport stays open until the handshake's next step, or the close, ends it.
        return True

    def pause_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.resume_writing()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    # -- called by the protocol of the connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "sslcontext":
            return self._context
        if name == "ssl_object":
            return self._tls
        return self._raw.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.BufferedProtocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self if self._protocol is None else self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._reading_paused = True
        if not self._raw.is_closing():
            self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        if not self._raw.is_closing():
            self._raw.resume_reading()
            # The bytes that came before the pause.
            self._loop.call_soon(self._decrypt)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    # Hot: once per write.
    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or not data:
            return
        try:
            sent = self._tls.write(data)
            # Each call makes one record, of at most 16 KiB.
            while sent < len(data):
                sent += self._tls.write(memoryview(data)[sent:])
        except ssl.SSLError:
            # Invalid bytes came after the request.
            self._break()
        else:
            self._send()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        """Send what was written, and the end of the TLS stream; then close the connection."""
        if self._is_closing:
            return
        self._is_closing = True
        # The client's own end of the stream is not waited for.
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._send()
        self._raw.close()

    def abort(self) -> None:
        """Close the connection at once; also during a handshake."""
        self._is_closing = True
        self._raw.abort()

    # -- bytes

    def _send(self) -> None:
        if self._outgoing.pending and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())

    # Hot: once per receive.
    def _decrypt(self) -> None:
        """Give the protocol what has come, until it pauses or closes."""
        while not (self._is_closing or self._reading_paused) and self._protocol is not None:
            room = self._protocol.get_buffer(-1)
            filled, is_last, after = self._read(room)
            if filled:
                self._protocol.buffer_updated(filled)
            if is_last:
                after()
                return

    def _read(self, room: Any) -> tuple[int, bool, Callable[[], None]]:
        """Decrypt into `room`.

        Return the number of bytes, whether none are left, and what to do then.
        """
        filled, size = 0, len(room)
        try:
            while filled < size:
                # Each call reads one record, of at most 16 KiB.
                count = cast("int", self._tls.read(size - filled, room[filled:]))
                if not count:
                    # The client has ended the TLS stream.
                    return filled, True, self.close
                filled += count
                if not self._incoming.pending and filled < size:
                    return filled, True, self._send
        except ssl.SSLWantReadError:
            return filled, True, self._send
        except ssl.SSLError:
            return filled, True, self._break
        return filled, False, self._send

    def _break(self) -> None:
        """Close after invalid bytes, for which OpenSSL has made an alert."""
        self._is_closing = True
        self._send()
        self._raw.close()


def _left() -> ConnectionResetError:
    return ConnectionResetError("the client left in the TLS handshake")
