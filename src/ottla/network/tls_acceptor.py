"""Accepts the connections of a TLS listener, and counts each one before its handshake.

Each handshake runs in a task with a time limit, and its signatures in a thread: see
`network.tls.stream`.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ottla.base.system import anonymous_memory
from ottla.network.refusals import Refusals
from ottla.network.tls.stream import RECEIVE_BYTES, TlsStream
from ottla.network.tls.trouble import of_client

_log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S = 10.0
# The number of threads for the steps of handshakes.
_THREADS = 1
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
        make: Callable[[], asyncio.BufferedProtocol],
    ) -> None:
        self._accepting = accepting
        self._slots = slots
        self._refusals = refusals
        self._context = context
        self._make = make
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._receive_buffer = memoryview(anonymous_memory(RECEIVE_BYTES))
        self._threads = ThreadPoolExecutor(_THREADS, "ottla-tls-handshake")

    def open(self, backlog: int) -> None:
        """Begin to listen."""
        self._accepting.listen(backlog)
        self._start(self._accept())

    def close(self) -> None:
        """Accept no more connections, and cancel the handshakes in progress."""
        for task in self._tasks:
            task.cancel()
        self._accepting.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

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
        stream: TlsStream | None = None
        is_counted = True
        try:
            if wait_ms:
                await asyncio.sleep(wait_ms / 1000)
            if refusal is not None:
                self._refuse(host, port, refusal, refusal)
                return
            _, stream = await self._loop.connect_accepted_socket(
                lambda: TlsStream(self._loop, self._context(), self._receive_buffer), accepted
            )
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                await stream.handshake(self._threads)
            # From here on the connection subtracts itself from the counts.
            is_counted = False
            stream.begin(self._make())
        except OSError as error:
            # A handshake that the client abandons costs as much as a failed one, but is not logged.
            self._slots.failed(host)
            trouble = of_client(error)
            if trouble is not None:
                self._refuse(host, port, trouble.kind, trouble.sentence)
        finally:
            if is_counted:
                self._slots.leave(host)
                if stream is None:
                    accepted.close()
                else:
                    stream.abort()

    def _refuse(self, host: str, port: int, kind: str, why: str) -> None:
        self._refusals.log(
            (host, kind), lambda: f"closing the connection from {host}:{port}: {why}"
        )

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
