"""The cluster part of a broker: its registration, and its connections to other brokers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener
from ottla.broker.cluster.addresses import Departed
from ottla.broker.cluster.admission import Admission
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.handshake import Credentials
from ottla.broker.cluster.links import Links, idle_ms
from ottla.broker.cluster.membership import BrokerMembership
from ottla.broker.cluster.old_session import SessionNote
from ottla.broker.cluster.peer_login import broker_identity
from ottla.broker.cluster.peers import PeerLimits, Peers
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Session, Store
from ottla.network.dialer import Dialer
from ottla.storage.disk.filesystem import FileSystem

_PING_INTERVAL_MS = 10_000


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The status of the registration and the connections.

    `broker_epoch` is 0 before the first registration, `controller_epoch` before the first request
    of a controller.
    """

    cluster_id: str
    is_registered: bool
    broker_epoch: int
    controller_epoch: int
    # Registered brokers in the image, this one included, and open connections to them.
    brokers: int
    connections: int
    # The address of each registered broker on its first listener, `host:port`.
    addresses: Mapping[int, str]


class ClusterPart(BrokerPart):
    """Registers this broker, and ends its session at shutdown, after the parts that use it.

    `on_joined` is called with the session of each new registration.
    """

    on_joined: Callable[[Session], Awaitable[None]]

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        filesystem: FileSystem,
        dialer: Dialer,
        store: Store,
        cluster_id: str,
        secret: bytes,
    ) -> None:
        self._settings = settings
        self.store = store
        view = self.view = ClusterView(BrokerId(settings.broker_id), cluster_id)
        fence = self.fence = ControllerFence()
        # Emitted when the registration is lost: this broker then leads nothing (S16).
        self.registration_lost: Signal[[]] = Signal()
        # Emitted when no other broker is reached: this broker then gives up its registration.
        self.isolated: Signal[[]] = Signal()
        self.departed = Departed()
        own = Credentials(
            view.broker_id, cluster_id, secret, random_bytes, lambda: fence.broker_epoch
        )
        self.admission = Admission(own, lambda: view.image)
        limits = PeerLimits(
            connect_timeout_ms=settings.integer("socket.connection.setup.timeout.ms"),
            ping_interval_ms=_ping_interval_ms(settings.integer("connections.max.idle.ms")),
        )
        self.peers = Peers(
            own,
            lambda: view.image,
            inter_broker_listener(settings),
            dialer,
            limits,
            broker_identity(settings),
        )
        folder = settings.log_dirs[0]
        self.membership = BrokerMembership(
            store,
            fence,
            clock,
            settings.integer("broker.session.timeout.ms"),
            filesystem.page_cache_id(folder),
            note=SessionNote(filesystem, folder),
            on_lost=self.registration_lost.emit,
            on_joined=self._joined,
        )

    def links(self) -> Links:
        """Create separate connections to the other brokers."""
        return Links(self.peers, idle_ms=idle_ms(self._settings))

    async def stop(self) -> None:
        self.peers.close()
        await self.membership.leave()

    def status(self) -> ClusterStatus:
        fence = self.fence
        return ClusterStatus(
            cluster_id=self.view.cluster_id,
            is_registered=fence.is_registered,
            broker_epoch=fence.broker_epoch,
            controller_epoch=fence.controller_epoch,
            brokers=len(self.view.image.brokers),
            connections=len(self.peers),
            addresses={
                broker.id: next((f"{at.host}:{at.port}" for at in broker.endpoints.values()), "")
                for broker in self.view.image.brokers.values()
            },
        )

    async def _joined(self, session: Session) -> None:
        await self.on_joined(session)


def _ping_interval_ms(idle_ms: int) -> int:
    """Return a ping interval short enough that no broker closes the connection as idle."""
    return min(_PING_INTERVAL_MS, max(1, idle_ms // 3)) if idle_ms > 0 else _PING_INTERVAL_MS
