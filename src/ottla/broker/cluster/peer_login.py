"""The login of this broker on another one's SASL listener, before the brokers' own handshake."""

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener, listen_addresses
from ottla.network.peer import PeerConnection
from ottla.security.sasl.client import SaslIdentity, identity_of, login_requests
from ottla.security.sasl.jaas import parse_jaas

_JAAS = "sasl.jaas.config"


def broker_identity(settings: BrokerSettings) -> SaslIdentity | None:
    """Who this broker is for others; None where brokers do not log in.

    Raises OttlaError(INVALID_CONFIG) where the settings give no user and password.
    """
    listener = inter_broker_listener(settings)
    protocols = {address.name: address.protocol for address in listen_addresses(settings)}
    if not protocols[listener].startswith("SASL"):
        return None
    mechanism = settings.text("sasl.mechanism.inter.broker.protocol")
    if "sasl.mechanism.inter.broker.protocol" not in settings.static:
        # A broker by itself dials none; `log_in` is the error for others.
        return SaslIdentity(mechanism, "", "")
    name = f"{mechanism.lower()}.{_JAAS}"
    text = settings.of_listener(listener, name) or settings.value(_JAAS)
    if text is None:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"listener.name.{listener.lower()}.{name} is missing: brokers log in on listener "
            f"{listener} by sasl.mechanism.inter.broker.protocol={mechanism}",
        )
    return identity_of(mechanism, parse_jaas(str(text)))


async def log_in(connection: PeerConnection, identity: SaslIdentity, timeout_ms: int) -> None:
    """Log in over a connection that was just opened. Raises OttlaError."""
    if not identity.user:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "brokers meet on a SASL listener, and this one has no user for it: set "
            "sasl.mechanism.inter.broker.protocol and the listener's sasl.jaas.config",
        )
    requests = login_requests(identity, connection.name, random_bytes)
    request = next(requests)
    while True:
        response = await connection.request(request, timeout_ms=timeout_ms)
        try:
            request = requests.send(response)
        except StopIteration:
            return
