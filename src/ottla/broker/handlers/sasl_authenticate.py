"""SaslAuthenticate (36), versions 0-2: one step of a login on a SASL listener (KIP-152).

On such a listener `broker.login` serves it. Elsewhere it is refused with ILLEGAL_SASL_STATE, as by
Kafka.
"""

from dataclasses import dataclass

from ottla.broker.handlers.sasl_handshake import no_sasl
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import free
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class SaslAuthenticate(Handler):
    """Serves SaslAuthenticate."""

    api = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, Versions(0, 2), needs=free)

    def handle(
        self, request: RequestContext, _body: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        """Refuse the request, because no login has begun."""
        raise no_sasl(request)
