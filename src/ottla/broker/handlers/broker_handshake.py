"""BrokerHandshake (1000), version 0: another broker proves that it belongs to this cluster.

Each new connection between brokers makes two calls; `broker/cluster/handshake.py` explains the
proof. The API is not advertised, and served only on the listener that brokers use among themselves.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.admission import Admission
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import free
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.between_brokers import BrokerHandshakeRequest, BrokerHandshakeResponse


@dataclass(slots=True, eq=False, repr=False)
class BrokerHandshake(Handler):
    """Serves BrokerHandshake."""

    api = Api(
        BrokerHandshakeRequest,
        BrokerHandshakeResponse,
        Versions(0, 0),
        needs=free,
        makes_proven=True,
    )

    admission: Admission
    inter_broker_listener: str

    def handle(
        self, request: RequestContext, body: BrokerHandshakeRequest
    ) -> BrokerHandshakeResponse:
        """Answer one of the two calls."""
        if request.listener != self.inter_broker_listener:
            raise OttlaError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"brokers meet on the listener {self.inter_broker_listener}, and this is "
                f"{request.listener}; set inter.broker.listener.name alike on all brokers",
            )
        return self.admission.on_handshake(request.connection, body)
