"""The handlers of SASL requests that arrive when no login is expected."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import free
from ottla.broker.requests.request import RequestContext
from ottla.security.principal import ANONYMOUS
from ottla.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


def no_sasl(request: RequestContext) -> OttlaError:
    """Return the error, and log the refusal at intervals per address."""
    client = request.connection
    if client.principal == ANONYMOUS:
        why = (
            f"SASL on the listener {request.listener}, which is PLAINTEXT: set"
            " security.protocol=PLAINTEXT in the client, and no sasl settings"
        )
    else:
        why = f"SASL again, though {client.principal} has logged in and its session has no end"
    error = OttlaError(ErrorCode.ILLEGAL_SASL_STATE, why)
    client.refusals.log(
        (client.peer_host, "SASL"),
        lambda: (
            f"refused {client.peer_host}:{client.peer_port} (client id"
            f" {request.client_id!r}): it asked for {error.message}"
        ),
    )
    return error


@dataclass(slots=True, eq=False, repr=False)
class SaslHandshake(Handler):
    """SaslHandshake (17), versions 0-1: begins a login on a SASL listener (KIP-43).

    During a login `broker.login` serves this request. It reaches this handler on a listener without
    SASL, or after a login that never expires. As in Kafka it is then refused with
    ILLEGAL_SASL_STATE.
    """

    api = Api(SaslHandshakeRequest, SaslHandshakeResponse, Versions(0, 1), needs=free)

    def handle(self, request: RequestContext, _body: SaslHandshakeRequest) -> SaslHandshakeResponse:
        """Refuse the request, because no login is expected."""
        raise no_sasl(request)


@dataclass(slots=True, eq=False, repr=False)
class SaslAuthenticate(Handler):
    """SaslAuthenticate (36), versions 0-2: one step of a login on a SASL listener (KIP-152).

    During a login `broker.login` serves this request. Otherwise it is refused with
    ILLEGAL_SASL_STATE, as in Kafka.
    """

    api = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, Versions(0, 2), needs=free)

    def handle(
        self, request: RequestContext, _body: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        """Refuse the request, because no login has begun."""
        raise no_sasl(request)
