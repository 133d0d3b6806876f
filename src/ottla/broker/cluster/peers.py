"""This broker's connections to other brokers: opened when needed, and proven by a handshake.

One control connection to each broker carries requests in order. A fetcher opens a connection of its
own. Failures are raised to the caller, which may retry.
"""

import asyncio
import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.handshake import Credentials, Opener, Party
from ottla.broker.cluster.peer_login import log_in
from ottla.broker.runtime.signal import Signal
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint
from ottla.network.dialer import Dialer
from ottla.network.exchange import RESPONSE_BYTES_MAX
from ottla.network.peer import PeerConnection
from ottla.security.sasl.client import SaslIdentity
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.notation import Message

_log = logging.getLogger(__name__)

# Error codes of requests without an answer.
_NO_ANSWER = (
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)
# How long a broker is doubted after its connection broke. By then other leaders have been elected,
# or the broker was reached again.
_DOUBT_S = 1.0


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """Timeouts for other brokers, in milliseconds, and the largest answer accepted."""

    connect_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    # A control connection is used at least this often, so that its end is noticed.
    ping_interval_ms: int = 10_000
    response_bytes_max: int = RESPONSE_BYTES_MAX


class Peers:
    """The connections to the other brokers.

    `on_lost` is emitted with the broker's id when a proven connection ends that this broker did not
    close. The other broker may have died.
    """

    def __init__(
        self,
        credentials: Credentials,
        image: Callable[[], ClusterImage],
        listener: str,
        dialer: Dialer,
        limits: PeerLimits,
        identity: SaslIdentity | None = None,
    ) -> None:
        """`identity` is this broker's login, if brokers log in by SASL."""
        self.on_lost: Signal[[BrokerId]] = Signal()
        self._credentials = credentials
        self._image = image
        # The name of the inter-broker listener.
        self._listener = listener
        self._dialer = dialer
        self._limits = limits
        self._identity = identity
        self._controls: dict[BrokerId, _Control] = {}
        # Brokers whose connection broke, with the loop time until which they are doubted.
        self._doubted: dict[BrokerId, float] = {}
        # The open connections, in the order in which they were opened.
        self._open: dict[PeerConnection, None] = {}
        self._closed = False

    def __len__(self) -> int:
        """The number of open connections."""
        return len(self._open)

    async def request(
        self,
        broker_id: BrokerId,
        message: Message,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send a request over the control connection and return its response.

        Requests to one broker arrive in the order of the calls. If `version` is None, the highest
        version of this release is used. Raises OttlaError if the broker is not alive, cannot be
        reached, rejects this broker, or does not answer in time; then it may have carried out the
        request.
        """
        connection = await self._control(broker_id)
        if timeout_ms is None:
            timeout_ms = self._limits.request_timeout_ms
        return await connection.request(message, timeout_ms=timeout_ms, version=version)

    async def open(self, broker_id: BrokerId) -> PeerConnection:
        """Open a proven connection that the caller owns and closes. Raises OttlaError."""
        connection, _ = await self._connect(broker_id, self._endpoint(self._broker(broker_id)))
        return connection

    async def answers(self, broker: BrokerImage, within_s: float) -> bool:
        """Whether a broker answers, even with a refusal, at the address in `broker`."""
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            try:
                async with asyncio.timeout(within_s):
                    connection, _ = await self._connect(broker.id, self._endpoint(broker))
            except TimeoutError:
                if loop.time() - began_s > 2 * within_s:
                    # This process itself was paused.
                    continue
                return False
            except OttlaError as error:
                return error.code not in _NO_ANSWER
            connection.close()
            return True

    async def reaches(self, broker: BrokerImage, within_s: float) -> bool:
        """Whether a broker's machine accepts or refuses a connection.

        Either shows that packets pass both ways, so neither broker is cut off, even if the broker
        process hangs or is busy.
        """
        endpoint = self._endpoint(broker)
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            try:
                await self._dialer.dial(
                    endpoint.host, endpoint.port, _Knock, int(within_s * 1000), knocks=True
                )
            except OttlaError as error:
                if isinstance(error.__cause__, ConnectionRefusedError):
                    return True
                if loop.time() - began_s > 2 * within_s:
                    # This process itself was paused.
                    continue
                return False
            return True

    async def reaches_known(self, broker_id: BrokerId, within_s: float) -> bool:
        """Do as `reaches`, but return False for a broker that is not in the image."""
        broker = self._image().brokers.get(broker_id)
        return broker is not None and await self.reaches(broker, within_s)

    def answering(self) -> AbstractSet[BrokerId]:
        """Return the brokers of the image, except those whose connection broke a moment ago.

        Such a broker is probably dead, and other leaders will be elected soon. Clients that get no
        leader meanwhile ask again at once, but clients that are sent to a dead broker may take a
        second. Brokers that are merely silent are included, because clients may reach them.
        """
        alive = self._image().brokers.keys()
        if not self._doubted:
            return alive
        now_s = asyncio.get_running_loop().time()
        self._doubted = {b: until_s for b, until_s in self._doubted.items() if until_s > now_s}
        return alive - self._doubted.keys()

    def on_image(self) -> None:
        """Close control connections to brokers that left the image or changed their address."""
        for broker_id in list(self._controls):
            broker = self._image().brokers.get(broker_id)
            if broker is None or not self._fits(self._controls[broker_id], broker):
                self._forget(broker_id)

    def close(self) -> None:
        """Close all connections and open no more."""
        self._closed = True
        for broker_id in list(self._controls):
            self._forget(broker_id)
        for connection in list(self._open):
            connection.close()
        self._open.clear()

    # -- control connections

    async def _control(self, broker_id: BrokerId) -> PeerConnection:
        broker = self._broker(broker_id)
        control = self._controls.get(broker_id)
        if control is not None and not self._fits(control, broker):
            self._forget(broker_id)
            control = None
        if control is None:
            control = _Control(self._endpoint(broker))
            self._controls[broker_id] = control
            control.opening = asyncio.get_running_loop().create_task(
                self._open_control(broker_id, control)
            )
        # Shielded, because other requests may wait for the same connection.
        return await asyncio.shield(control.ready)

    async def _open_control(self, broker_id: BrokerId, control: "_Control") -> None:
        try:
            connection, party = await self._connect(broker_id, control.endpoint)
        except OttlaError as error:
            if self._controls.get(broker_id) is control:
                self._forget(broker_id, error)
            return
        control.connection = connection
        control.broker_epoch = party.broker_epoch
        self._schedule_ping(control)
        control.ready.set_result(connection)

    def _fits(self, control: "_Control", broker: BrokerImage) -> bool:
        """Whether a control connection is open, and matches the broker's address and epoch."""
        if broker.endpoints.get(self._listener) != control.endpoint:
            return False
        if control.connection is None:
            return True
        # The image may be older than the epoch that the broker itself has proven.
        return control.connection.is_open and broker.epoch <= control.broker_epoch

    def _forget(self, broker_id: BrokerId, why: OttlaError | None = None) -> None:
        if why is None:
            why = OttlaError(
                ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} left, or moved elsewhere"
            )
        self._controls.pop(broker_id).close(why)

    def _schedule_ping(self, control: "_Control") -> None:
        loop = asyncio.get_running_loop()
        control.timer = loop.call_later(self._limits.ping_interval_ms / 1000, self._ping, control)

    def _ping(self, control: "_Control") -> None:
        connection = control.connection
        if connection is None or not connection.is_open:
            return
        if not connection.in_flight:
            timeout_ms = self._limits.request_timeout_ms
            connection.send(ApiVersionsRequest(), _ignore, timeout_ms=timeout_ms, version=0)
        self._schedule_ping(control)

    # -- any connection

    def _broker(self, broker_id: BrokerId) -> BrokerImage:
        assert broker_id != self._credentials.broker_id, "a broker does not dial itself"
        broker = self._image().brokers.get(broker_id)
        if broker is None:
            raise OttlaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"broker {broker_id} is not alive as far as this broker knows",
            )
        return broker

    def _endpoint(self, broker: BrokerImage) -> Endpoint:
        endpoint = broker.endpoints.get(self._listener)
        if endpoint is None:
            raise OttlaError(
                ErrorCode.LISTENER_NOT_FOUND,
                f"broker {broker.id} has no listener {self._listener}, which brokers use among "
                "themselves here; set inter.broker.listener.name alike on all of them",
            )
        # A broker without a host listens on all interfaces of this machine.
        return endpoint if endpoint.host else Endpoint("localhost", endpoint.port)

    async def _connect(
        self, broker_id: BrokerId, endpoint: Endpoint
    ) -> tuple[PeerConnection, Party]:
        """Connect to a broker and carry out the handshake. Raises OttlaError."""
        connection = PeerConnection(
            f"broker {broker_id} at {endpoint.host}:{endpoint.port}",
            f"broker-{self._credentials.broker_id}",
            response_bytes_max=self._limits.response_bytes_max,
        )
        self._check_not_closed()
        self._open = {known: None for known in self._open if not known.is_closed}
        self._open[connection] = None
        try:
            await self._dialer.dial(
                endpoint.host, endpoint.port, lambda: connection, self._limits.connect_timeout_ms
            )
            if self._identity is not None:
                await log_in(connection, self._identity, self._limits.connect_timeout_ms)
            party = await self._prove(connection, broker_id)
            self._check_not_closed()
        except BaseException as error:
            connection.close()
            if isinstance(error, OttlaError):
                _log.warning("no connection to broker %d: %s", broker_id, error.message)
            raise
        self._doubted.pop(broker_id, None)
        connection.on_lost = lambda error: self._on_lost(broker_id, connection, error)
        return connection, party

    async def _prove(self, connection: PeerConnection, broker_id: BrokerId) -> Party:
        opener = Opener(self._credentials, broker_id)
        timeout_ms = self._limits.connect_timeout_ms
        challenge = await connection.request(opener.first(), timeout_ms=timeout_ms)
        proof = opener.second(challenge)
        return opener.finish(await connection.request(proof, timeout_ms=timeout_ms))

    def _on_lost(self, broker_id: BrokerId, connection: PeerConnection, error: OttlaError) -> None:
        _log.info("lost a connection: %s", error.message)
        if not isinstance(error.__cause__, TimeoutError):
            self._doubted[broker_id] = asyncio.get_running_loop().time() + _DOUBT_S
        control = self._controls.get(broker_id)
        if control is not None and control.connection is connection:
            self._forget(broker_id)
        self.on_lost.emit(broker_id)

    def _check_not_closed(self) -> None:
        if self._closed:
            raise OttlaError(ErrorCode.BROKER_NOT_AVAILABLE, "this broker stops")


class _Control:
    """The control connection to one broker, which may still be opening."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        # The broker epoch proven by the handshake.
        self.broker_epoch = 0
        self.connection: PeerConnection | None = None
        self.opening: asyncio.Task[None] | None = None
        self.ready: asyncio.Future[PeerConnection] = asyncio.get_running_loop().create_future()
        # A future that is never awaited would log its exception as never retrieved.
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self.timer: asyncio.TimerHandle | None = None

    def close(self, why: OttlaError) -> None:
        if not self.ready.done():
            self.ready.set_exception(why)
            assert self.opening is not None
            self.opening.cancel()
        if self.timer is not None:
            self.timer.cancel()
        if self.connection is not None:
            self.connection.close()


class _Knock(asyncio.Protocol):
    """Closes a connection as soon as it is open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Close it in the next turn, not within the call that creates it.
        asyncio.get_running_loop().call_soon(transport.close)


def _ignore(_answer: Any) -> None:
    """Ignore a ping's answer, which only shows that the broker is alive."""
