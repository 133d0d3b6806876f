"""The listeners of a broker, created from its settings, and whether it serves clients yet.

All listeners share one memory budget and one receive buffer.
"""

from collections.abc import Callable

from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import listen_addresses
from ottla.base.system import anonymous_memory
from ottla.broker.cluster.admission import proven_broker
from ottla.broker.requests.auditing import Auditing
from ottla.network.connection import RECEIVE_BUFFER_BYTES, Connection
from ottla.network.listener import Listener
from ottla.network.memory_budget import MemoryBudget
from ottla.network.service import ConnectionLimits, Service
from ottla.network.tls_security import ListenerTls
from ottla.quota.connections import ConnectionQuotas


class Readiness:
    """Whether the broker serves clients yet; their requests wait until `begin`."""

    def __init__(self) -> None:
        self.is_serving = False
        self._waiting: list[Callable[[], None]] = []

    def when_serving(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the broker begins to serve clients."""
        self._waiting.append(callback)

    def begin(self) -> None:
        """Mark the broker as ready, because it knows its partitions."""
        self.is_serving = True
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()


# The memory budget for large requests if queued.max.request.bytes is not set.
_BUDGET_BYTES = 1 << 30


class Listeners:
    """All addresses on which clients and brokers reach this broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        quotas: ConnectionQuotas,
        service_of: Callable[[str], Service],
        audit: Auditing | None,
    ) -> None:
        """Create the listeners.

        `service_of` returns the service of a listener, by the listener's name.
        """
        self._audit = audit
        self._settings = settings
        self._quotas = quotas
        self._service_of = service_of
        self.open: list[Listener] = []

    async def start(self) -> None:
        """Open all listeners. Raises OttlaError that names the failed listener and the reason."""
        settings = self._settings
        limits = connection_limits(settings)
        queued_bytes = settings.integer("queued.max.request.bytes")
        budget = MemoryBudget(queued_bytes if queued_bytes > 0 else _BUDGET_BYTES)
        # Unlike a bytearray, it takes only the pages that have been used.
        receive_buffer = memoryview(anonymous_memory(RECEIVE_BUFFER_BYTES))
        for address in listen_addresses(settings):
            service = self._service_of(address.name)
            tls = ListenerTls(settings, address) if address.is_tls else None
            listener = Listener(
                address.name, service, limits, budget, self._quotas, receive_buffer, tls
            )
            await listener.start(address.host, address.port)
            listener.on_certificate = self._on_certificate
            self.open.append(listener)

    def _on_certificate(self, connection: Connection, listener: str) -> None:
        if self._audit is not None:
            self._audit.logged_in(connection, listener, "SSL")

    def stop_reading(self) -> None:
        """Accept no more connections and read no more from clients; still send pending answers.

        Connections of other brokers are still read: the fetches of followers advance the high
        watermark, so that waiting producers get their answers.
        """
        for listener in self.open:
            listener.stop_reading(lambda connection: proven_broker(connection) is not None)

    async def stop(self) -> None:
        """Accept no more connections, and close all open ones."""
        for listener in self.open:
            await listener.stop()
        self.open.clear()

    @property
    def ports(self) -> dict[str, int]:
        """Return the port of each listener, by its name."""
        return {listener.name: listener.port for listener in self.open}

    @property
    def port(self) -> int:
        """Return the first listener's port."""
        return self.open[0].port if self.open else 0


def connection_limits(settings: BrokerSettings) -> ConnectionLimits:
    """Return the connection limits. Socket buffer sizes are left to the system unless set."""
    buffers = {
        name: settings.integer(name) if name in settings.static else -1
        for name in ("socket.send.buffer.bytes", "socket.receive.buffer.bytes")
    }
    return ConnectionLimits(
        request_bytes_max=settings.integer("socket.request.max.bytes"),
        idle_ms_max=settings.integer("connections.max.idle.ms"),
        send_buffer_bytes=buffers["socket.send.buffer.bytes"],
        receive_buffer_bytes=buffers["socket.receive.buffer.bytes"],
        backlog=settings.integer("socket.listen.backlog.size"),
    )
