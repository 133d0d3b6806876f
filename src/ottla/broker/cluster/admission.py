"""Authenticates the connections of other brokers by a handshake."""

from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.handshake import Credentials, Receiver
from ottla.broker.requests.request import RequestContext
from ottla.metadata.image import ClusterImage
from ottla.network.connection import Connection
from ottla.wire.messages.between_brokers import BrokerHandshakeRequest, BrokerHandshakeResponse


class PeerIdentity:
    """The result of the handshake on one connection."""

    __slots__ = ("receiver", "warned")

    def __init__(self) -> None:
        self.receiver: Receiver | None = None
        # Whether a refusal was logged; it is logged once per connection.
        self.warned = False


class Admission:
    """The receiving side of all handshakes with this broker."""

    def __init__(
        self,
        own: Credentials,
        image: Callable[[], ClusterImage],
    ) -> None:
        self._own = own
        self._image = image
        # The highest epoch that each broker has proven here; the image may be older.
        self._epochs: dict[int, int] = {}

    def on_handshake(
        self, connection: Connection, request: BrokerHandshakeRequest
    ) -> BrokerHandshakeResponse:
        """Answer one handshake request. Raises OttlaError if the sender is refused."""
        identity = _identity(connection)
        if identity.receiver is None:
            identity.receiver = Receiver(self._own)
        receiver = identity.receiver
        known_epoch = max(self._epochs.get(request.broker_id, 0), self._epoch_of(request.broker_id))
        try:
            response = receiver.on_request(request, known_epoch)
        except OttlaError as error:
            message = error.message
            connection.refusals.log(
                (connection.peer_host, "broker handshake"),
                lambda: (
                    f"refused a broker's handshake from {connection.peer_host}:"
                    f"{connection.peer_port}: {message}"
                ),
            )
            raise
        if receiver.proven is not None:
            self._epochs[receiver.proven.broker_id] = receiver.proven.broker_epoch
        return response

    def _epoch_of(self, broker_id: int) -> int:
        broker = self._image().brokers.get(BrokerId(broker_id))
        return 0 if broker is None else broker.epoch


def proven_broker(connection: Connection) -> BrokerId | None:
    """Return the broker at the other end; None for a client or an unproven peer."""
    identity = connection.identity
    if not isinstance(identity, PeerIdentity):
        return None
    receiver = identity.receiver
    if receiver is None or receiver.proven is None:
        return None
    return BrokerId(receiver.proven.broker_id)


def require_broker(request: RequestContext, what: str, broker_id: int | None = None) -> BrokerId:
    """Return the broker that sent the request, which must be `broker_id` if that is given.

    Raises OttlaError(CLUSTER_AUTHORIZATION_FAILED) for any other sender, which is logged once per
    connection. `what` names the request.
    """
    found = proven_broker(request.connection)
    if found is not None and broker_id in (None, found):
        return found
    raise refuse_client(request, what if broker_id is None else f"{what} as broker {broker_id}")


def refuse_client(request: RequestContext, what: str) -> OttlaError:
    """Return the error for a peer that is not the required broker; log it once per connection."""
    found = proven_broker(request.connection)
    whose = "a connection not proven to be a broker's" if found is None else f"broker {found}"
    error = OttlaError(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        f"{what} came over {whose}; clients must not send it, and brokers prove themselves first "
        "by the cluster's secret: does one of them use another store?",
    )
    identity = _identity(request.connection)
    if not identity.warned:
        identity.warned = True
        request.connection.refusals.log(
            (request.client_host, "brokers only"),
            lambda: (
                f"refused {request.client_host}:{request.connection.peer_port} (client id "
                f"{request.client_id}): {error.message}"
            ),
        )
    return error


def _identity(connection: Connection) -> PeerIdentity:
    if not isinstance(connection.identity, PeerIdentity):
        connection.identity = PeerIdentity()
    assert isinstance(connection.identity, PeerIdentity)
    return connection.identity
