"""Serves the metrics over HTTP, to few clients at a time, each for a short time."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final

from ottla.base.errors import ErrorCode, OttlaError

_log = logging.getLogger(__name__)

PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_CLIENTS_MAX: Final = 16
# How long a client may take to send its request, and to take the answer.
_PATIENCE_S: Final = 10.0
_REQUEST_BYTES_MAX: Final = 8_192

Body = Callable[[], AsyncIterator[bytes]]


class MetricsEndpoint:
    """An HTTP server for one document; `body` yields its pieces."""

    def __init__(self, host: str, port: int, body: Body) -> None:
        self._host = host
        self._port = port
        self._body = body
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Return the port, also if 0 was asked for."""
        assert self._server is not None, "started"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Listen. Raises OttlaError with cause and remedy."""
        try:
            self._server = await asyncio.start_server(
                self._on_client, self._host or None, self._port, limit=_REQUEST_BYTES_MAX
            )
        except OSError as error:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"cannot serve metrics on {self._host}:{self._port}: {error.strerror or error};"
                " choose another address in metrics.listen",
            ) from error

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._clients) >= _CLIENTS_MAX:
            writer.transport.abort()
            return
        self._clients.add(task)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._answer(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._clients.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0].split()
        method, target = (request[0], request[1]) if len(request) == 3 else (b"", b"")
        path = target.partition(b"?")[0].decode("latin-1")
        if method not in (b"GET", b"HEAD"):
            _write_short(writer, "405 Method Not Allowed", "only GET is answered\n")
        elif path == PATH:
            writer.write(_head("200 OK", CONTENT_TYPE))
            if method == b"GET":
                async for piece in self._body():
                    writer.write(piece)
                    # Even if the client takes all at once, other requests are served in between.
                    await asyncio.sleep(0)
                    await writer.drain()
        else:
            _write_short(writer, "404 Not Found", f"the metrics are at {PATH}\n")
        with contextlib.suppress(OSError):
            await writer.drain()


def _head(status: str, content_type: str) -> bytes:
    # The end of the connection is the end of the answer.
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n"
    ).encode()


def _write_short(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    writer.write(_head(status, "text/plain; charset=utf-8") + text.encode())
