"""Accepts connections on an address, counts them, and closes idle ones."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import anonymous_memory, give_memory_back
from ottla.network.connection import RECEIVE_BUFFER_BYTES, Connection
from ottla.network.memory_budget import MemoryBudget
from ottla.network.output import CHUNK_BYTES
from ottla.network.refusals import Refusals
from ottla.network.service import ConnectionLimits, Service
from ottla.network.tls_acceptor import TlsAcceptor
from ottla.network.tls_security import ListenerTls
from ottla.quota.connections import ConnectionQuotas
from ottla.security.principal import ANONYMOUS

_log = logging.getLogger(__name__)

_SWEEPS_PER_IDLE_TIME = 4
# After this many ended TLS connections, and at this interval, memory is returned to the system.
_ENDED_MAX = 100
_GIVE_BACK_S = 1.0
# The option allows binding a port on which connections of an earlier listener linger. Windows has
# another option for that, because its SO_REUSEADDR would allow two listeners on one port.
_ADDRESS_OPTION: int = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)


@runtime_checkable
class OwnNetwork(Protocol):
    """An event loop of a simulated network, which has addresses of its own."""

    def bind(self, host: str, port: int) -> socket.socket:
        """Bind an address, as a socket for `create_server`. Raises OSError."""
        ...


class Listener:
    """Accepts Kafka connections on one address and hands their requests to one service."""

    def __init__(
        self,
        name: str,
        service: Service,
        limits: ConnectionLimits,
        budget: MemoryBudget,
        quotas: ConnectionQuotas,
        receive_buffer: memoryview | None = None,
        tls: ListenerTls | None = None,
    ) -> None:
        """Create the listener; without `tls` it accepts plaintext connections."""
        self.name = name
        self.service = service
        self.limits = limits
        self.budget = budget
        self.receive_buffer = receive_buffer or memoryview(anonymous_memory(RECEIVE_BUFFER_BYTES))
        self.send_buffer = memoryview(anonymous_memory(CHUNK_BYTES))
        # In the order in which the connections were opened.
        self.connections: dict[Connection, None] = {}
        self.port = 0
        self._quotas = quotas
        self._server: asyncio.Server | None = None
        self._tls = tls
        self._acceptor: TlsAcceptor | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()
        self._accepts = True
        # Called with a connection that has a client certificate, and with the listener's name.
        self.on_certificate: Callable[[Connection, str], None] = lambda _connection, _name: None
        # The number of TLS connections that ended since memory was last returned.
        self._ended = 0

    async def start(self, host: str, port: int) -> None:
        """Bind and listen; port 0 means a free one: see `self.port`. Raises OttlaError."""
        self._loop = asyncio.get_running_loop()
        self.refusals = Refusals(self._loop.time)
        accepting = _bind(self._loop, host, port, self.limits)
        self.port = accepting.getsockname()[1]
        if self._tls is None:
            self._server = await self._loop.create_server(
                lambda: Connection(self, self._loop), sock=accepting, backlog=self.limits.backlog
            )
        else:
            self._acceptor = TlsAcceptor(
                accepting, self, self.refusals, self._tls.context, self._shaken
            )
            self._acceptor.open(self.limits.backlog)
        self._schedule_sweep()

    def stop_reading(self, goes_on: Callable[[Connection], bool]) -> None:
        """Accept no new connections, and stop reading all except those that `goes_on` selects.

        Answers are still sent.
        """
        self._accepts = False
        self._close_server()
        for connection in self.connections:
            if not goes_on(connection):
                connection.stop_reading()

    async def stop(self) -> None:
        """Accept no new connections, and close the open ones after sending their written data."""
        if self._sweep is not None:
            self._sweep.cancel()
        self._close_server()
        if self.connections:
            self._stopped.clear()
            for connection in list(self.connections):
                connection.close_quietly()
            try:
                await asyncio.wait_for(self._stopped.wait(), timeout=1.0)
            except TimeoutError:
                for connection in list(self.connections):
                    connection.close("the broker stops and the client does not read")

    def on_opened(self, connection: Connection) -> str | None:
        """Count a new connection. Returns the reason if it must be closed at once."""
        self.connections[connection] = None
        if self._tls is not None:
            # A TLS connection was counted before its handshake.
            if not self._accepts:
                return "the broker stops"
            refusal = self._tls.identify(connection)
            if refusal is None:
                refusal = self.on_known(connection)
            if refusal is None and connection.principal is not ANONYMOUS:
                self.on_certificate(connection, self.name)
            return refusal
        refusal, wait_ms = self.enter(connection.peer_host)
        if not self._accepts:
            # Accepted in the same turn of the loop in which the server was closed.
            return "the broker stops"
        if not wait_ms:
            return refusal
        if refusal is None:
            connection.delay(wait_ms)
        else:
            # It is closed before this delay ends, so none of its requests is served.
            connection.delay(2 * wait_ms + 1000)
            self._loop.call_later(wait_ms / 1000, _close, connection, refusal)
        return None

    def on_closed(self, connection: Connection) -> None:
        """Subtract a connection from the counts."""
        self.connections.pop(connection, None)
        if connection.user is not None:
            self._quotas.leave(connection.user)
        self.leave(connection.peer_host)
        if not self.connections:
            self._stopped.set()

    def enter(self, host: str) -> tuple[str | None, int]:
        """Count a connection of an address.

        Return the reason to close it, or None, and the number of milliseconds to wait before that.
        """
        verdict = self._quotas.open(self.name, host, int(self._loop.time() * 1000))
        return verdict.refusal, verdict.wait_ms

    def leave(self, host: str) -> None:
        """Subtract a connection of an address from the counts."""
        self._quotas.close(self.name, host)
        if self._tls is not None:
            self._ended += 1
            if self._ended == _ENDED_MAX:
                self._loop.call_later(_GIVE_BACK_S, self._give_memory_back)

    def on_known(self, connection: Connection) -> str | None:
        """Count the user of a connection. Returns the reason if it must be closed."""
        if connection.principal is ANONYMOUS or connection.user is not None:
            return None
        connection.user = connection.principal.name
        return self._quotas.enter(self.name, connection.user)

    def failed(self, host: str) -> None:
        """Count a failed login or handshake of an address."""
        self._quotas.failing.failed(host, int(self._loop.time() * 1000))

    def _shaken(self) -> Connection:
        return Connection(self, self._loop)

    def _give_memory_back(self) -> None:
        self._ended = 0
        give_memory_back()

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._acceptor is not None:
            self._acceptor.close()

    def _schedule_sweep(self) -> None:
        if self.limits.idle_ms_max > 0:
            delay_s = self.limits.idle_ms_max / 1000 / _SWEEPS_PER_IDLE_TIME
            self._sweep = self._loop.call_later(delay_s, self._close_idle)

    def _close_idle(self) -> None:
        now_ms = int(self._loop.time() * 1000)
        for connection in list(self.connections):
            if connection.active or connection.unanswered or connection.is_muted:
                connection.active = False
                connection.idle_since_ms = now_ms
            elif now_ms - connection.idle_since_ms >= self.limits.idle_ms_max:
                _log.info(
                    "closing an idle connection from %s:%d",
                    connection.peer_host,
                    connection.peer_port,
                )
                connection.close_quietly()
        self.refusals.sum_up()
        self._schedule_sweep()


def _close(connection: Connection, refusal: str) -> None:
    if not connection.closed:
        connection.close(refusal)


def _bind(
    loop: asyncio.AbstractEventLoop, host: str, port: int, limits: ConnectionLimits
) -> socket.socket:
    """Return a bound socket with the listener's options. Raises OttlaError with the reason."""
    try:
        return loop.bind(host, port) if isinstance(loop, OwnNetwork) else _bound(host, port, limits)
    except OSError as error:
        where = f"{host or 'all addresses'}"
        if error.errno == errno.EADDRINUSE:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"port {port} on {where} is in use, perhaps by another broker: stop that, or"
                " choose another port (`listeners`; `ottla start --port`)",
            ) from error
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"cannot listen on {where}, port {port}: {error}; check `listeners`",
        ) from error


def _bound(host: str, port: int, limits: ConnectionLimits) -> socket.socket:
    if host:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return _socket(found[0][0], (host, port), limits)
    if socket.has_dualstack_ipv6():
        return _socket(socket.AF_INET6, ("::", port), limits)
    return _socket(socket.AF_INET, ("", port), limits)


def _socket(
    family: socket.AddressFamily, address: tuple[str, int], limits: ConnectionLimits
) -> socket.socket:
    """Return a socket bound to `address`; on the IPv6 wildcard it accepts IPv4, too."""
    accepting = socket.socket(family, socket.SOCK_STREAM)
    try:
        accepting.setsockopt(socket.SOL_SOCKET, _ADDRESS_OPTION, 1)
        if family == socket.AF_INET6:
            only_ipv6 = address[0] != "::"
            accepting.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_ipv6)
        if limits.send_buffer_bytes > 0:
            accepting.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.send_buffer_bytes)
        if limits.receive_buffer_bytes > 0:
            accepting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.receive_buffer_bytes)
        accepting.setblocking(False)
        accepting.bind(address)
    except BaseException:
        accepting.close()
        raise
    return accepting
