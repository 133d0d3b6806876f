"""BrokerHandshake (1000), version 0: another broker proves that it belongs to this cluster.

Two calls on each new connection between brokers; what they prove stands in
`broker/cluster/handshake.py`. Not advertised, and taken on the listener that brokers use among
themselves only.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.broker_handshake import BrokerHandshakeRequest, BrokerHandshakeResponse

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(
    broker: "Broker", request: RequestContext, body: BrokerHandshakeRequest
) -> BrokerHandshakeResponse:
    """Answer one of the two calls."""
    if request.listener != broker.inter_broker_listener:
        raise OttlaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"brokers meet on the listener {broker.inter_broker_listener}, and this is "
            f"{request.listener}; set inter.broker.listener.name alike on all brokers",
        )
    return broker.admission.on_handshake(request.connection, body)


def on_error(
    _body: BrokerHandshakeRequest, code: ErrorCode, message: str | None, _version: int
) -> BrokerHandshakeResponse:
    """The error, with its words: they are read by whoever runs the other broker."""
    return BrokerHandshakeResponse(error_code=code, error_message=message)


HANDLER = LegacyHandler(ApiKey.BROKER_HANDSHAKE, 0, 0, handle)
