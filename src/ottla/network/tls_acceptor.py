"""Accepts the connections of a TLS listener: each is counted before its handshake.

The loop's own TLS does the work; each handshake is a task with a time limit.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from ottla.network.refusals import Refusals
from ottla.network.tls.handshake import HandshakeFailed
from ottla.network.tls.trouble import of_client

_log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S = 10.0
# How long a client may take to answer the end of the TLS stream.
_CLOSE_TIMEOUT_S = 2.0
# How long a client whose handshake failed may take to read the alert.
_LINGER_S = 1.0
_LINGER_BYTES = 64 << 10
# The pause after the system had no descriptor for a new connection.
_PAUSE_S = 0.1


class Slots(Protocol):
    """Counts connections from before their handshake."""

    def enter(self, host: str) -> tuple[str | None, int]:
        """Count a connection; return the reason to close it, and milliseconds to wait before."""
        ...

    def leave(self, host: str) -> None:
        """Subtract a connection from the counts."""
        ...

    def failed(self, host: str) -> None:
        """Note that the handshake of a client of this address failed."""
        ...


class _Shaking(asyncio.Protocol):
    """The protocol object until the handshake is done."""

    def __init__(self, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._make = make
        self.handed_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.handed_over = True
        connection = self._make()
        transport.set_protocol(connection)
        connection.connection_made(transport)


class TlsAcceptor:
    """Accepts on a bound socket.

    `make` creates the protocol of each connection after its handshake. From then on the
    connection's owner removes it from the counts.
    """

    def __init__(
        self,
        accepting: socket.socket,
        slots: Slots,
        refusals: Refusals,
        context: Callable[[], ssl.SSLContext],
        make: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self._accepting = accepting
        self._slots = slots
        self._refusals = refusals
        self._context = context
        self._make = make
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def open(self, backlog: int) -> None:
        """Begin to listen."""
        self._accepting.listen(backlog)
        self._start(self._accept())

    def close(self) -> None:
        """Accept no more, and cancel handshakes in progress."""
        for task in self._tasks:
            task.cancel()
        self._accepting.close()

    async def _accept(self) -> None:
        while True:
            try:
                accepted, address = await self._loop.sock_accept(self._accepting)
            except ConnectionError:
                continue
            except OSError as error:
                _log.error("cannot accept a connection: %s", error.strerror)
                await asyncio.sleep(_PAUSE_S)
                continue
            host = address[0].removeprefix("::ffff:")
            refusal, wait_ms = self._slots.enter(host)
            self._start(self._receive(accepted, host, address[1], refusal, wait_ms))
            # One per turn, so that requests of open connections are served between two handshakes.
            await asyncio.sleep(0)

    async def _receive(
        self, accepted: socket.socket, host: str, port: int, refusal: str | None, wait_ms: int
    ) -> None:
        shaking = _Shaking(self._make)
        try:
            if wait_ms:
                await asyncio.sleep(wait_ms / 1000)
            if refusal is None:
                await self._shake(accepted, shaking)
            else:
                self._refuse(host, port, refusal, refusal)
        except OSError as error:
            # A handshake that the client gives up costs as much as a failed one, but is not logged.
            self._slots.failed(host)
            trouble = of_client(error)
            if trouble is not None:
                self._refuse(host, port, trouble.kind, trouble.sentence)
        finally:
            if not shaking.handed_over:
                accepted.close()
                self._slots.leave(host)

    async def _shake(self, accepted: socket.socket, shaking: _Shaking) -> None:
        # After a failure the loop closes its own descriptor, before the alert could be sent.
        own = accepted.dup()
        try:
            await self._loop.connect_accepted_socket(
                lambda: shaking,
                accepted,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S,
                ssl_shutdown_timeout=_CLOSE_TIMEOUT_S,
            )
        except HandshakeFailed as error:
            if error.alert:
                await self._say_why(own, error.alert)
            raise
        finally:
            own.close()

    async def _say_why(self, own: socket.socket, alert: bytes) -> None:
        """Send the alert and keep reading: closing with unread bytes would reset the connection."""
        own.setblocking(False)
        with contextlib.suppress(OSError):
            own.send(alert)
            own.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(_LINGER_S):
                left = _LINGER_BYTES
                while left > 0 and (received := await self._loop.sock_recv(own, 4096)):
                    left -= len(received)

    def _refuse(self, host: str, port: int, kind: str, why: str) -> None:
        self._refusals.log(
            (host, kind), lambda: f"closing the connection from {host}:{port}: {why}"
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
