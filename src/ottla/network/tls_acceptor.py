"""Accepts the connections of a TLS listener, and counts each one before its handshake.

The event loop's own TLS is used; each handshake runs in a task with a time limit.
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
# How long to wait for a client's reply when the TLS stream is closed.
_CLOSE_TIMEOUT_S = 2.0
# How long a connection whose handshake failed stays open, so that the client can read the alert.
_LINGER_S = 1.0
_LINGER_BYTES = 64 << 10
# The pause before the next accept when the process had no free file descriptor.
_PAUSE_S = 0.1


class Slots(Protocol):
    """Counts connections, beginning before their handshake."""

    def enter(self, host: str) -> tuple[str | None, int]:
        """Count a connection.

        Return the reason to close it, or None, and the number of milliseconds to wait before that.
        """
        ...

    def leave(self, host: str) -> None:
        """Subtract a connection from the counts."""
        ...

    def failed(self, host: str) -> None:
        """Note that the handshake of a client of this address failed."""
        ...


class _Shaking(asyncio.Protocol):
    """The protocol object of a connection until its handshake is done."""

    def __init__(self, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._make = make
        self.handed_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.handed_over = True
        connection = self._make()
        transport.set_protocol(connection)
        connection.connection_made(transport)


class TlsAcceptor:
    """Accepts connections on a bound socket.

    `make` creates the protocol of each connection after its handshake. From then on the owner of
    the connection subtracts it from the counts.
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
        """Accept no more connections, and cancel the handshakes in progress."""
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
            # At most one connection per turn of the loop, so that requests are served between
            # handshakes.
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
            # A handshake that the client abandons costs as much as a failed one, but is not logged.
            self._slots.failed(host)
            trouble = of_client(error)
            if trouble is not None:
                self._refuse(host, port, trouble.kind, trouble.sentence)
        finally:
            if not shaking.handed_over:
                accepted.close()
                self._slots.leave(host)

    async def _shake(self, accepted: socket.socket, shaking: _Shaking) -> None:
        # After a failure the loop closes its descriptor at once; the alert is sent over this copy.
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
        """Send the alert and keep reading; a close with unread bytes would reset the connection."""
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
