"""Logs this broker in on another broker's SASL listener, before the handshake of brokers."""

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_listener, listen_addresses
from ottla.base.settings.tables.setting import Value
from ottla.network.oauth.daemon import in_daemon
from ottla.network.peer import PeerConnection
from ottla.security.sasl import bearer
from ottla.security.sasl.client import SaslIdentity, identity_of, login_requests
from ottla.security.sasl.jaas import parse_jaas

_JAAS = "sasl.jaas.config"
_ALLOWED = "sasl.oauthbearer.allowed.urls"


def broker_identity(settings: BrokerSettings) -> SaslIdentity | None:
    """Return this broker's login at other brokers; None if brokers do not log in.

    Raises OttlaError(INVALID_CONFIG) if the settings have no user and password.
    """
    listener = inter_broker_listener(settings)
    protocols = {address.name: address.protocol for address in listen_addresses(settings)}
    if not protocols[listener].startswith("SASL"):
        return None
    mechanism = settings.text("sasl.mechanism.inter.broker.protocol")
    if "sasl.mechanism.inter.broker.protocol" not in settings.static:
        # A single broker needs no login. If other brokers exist, `log_in` raises the error.
        return SaslIdentity(mechanism, "", "")
    name = f"{mechanism.lower()}.{_JAAS}"
    text = settings.of_listener(listener, name) or settings.value(_JAAS)
    if mechanism == bearer.MECHANISM:
        return _bearer_identity(settings, listener, "" if text is None else str(text))
    if text is None:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"listener.name.{listener.lower()}.{name} is missing: brokers log in on listener "
            f"{listener} by sasl.mechanism.inter.broker.protocol={mechanism}",
        )
    return identity_of(mechanism, parse_jaas(str(text)))


def _bearer_identity(settings: BrokerSettings, listener: str, text: str) -> SaslIdentity:
    """Return the identity for OAUTHBEARER, from the settings of Kafka's own client."""
    # This imports an HTTP client, which most brokers do not need.
    from ottla.network.oauth.options import token_options, token_source  # noqa: PLC0415

    def value(name: str) -> Value:
        return settings.of_mechanism(listener, bearer.MECHANISM, name)

    jaas = parse_jaas(text) if text else None
    options = {} if jaas is None or jaas.mechanism != bearer.MECHANISM else jaas.options
    chosen = token_options(value, options, settings.texts(_ALLOWED), _ALLOWED)
    return SaslIdentity(bearer.MECHANISM, "", "", token_source(chosen).token)


async def log_in(connection: PeerConnection, identity: SaslIdentity, timeout_ms: int) -> None:
    """Log in over a newly opened connection. Raises OttlaError."""
    if not identity.user and identity.token is None:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "brokers meet on a SASL listener, and this one has no user for it: set "
            "sasl.mechanism.inter.broker.protocol and the listener's sasl.jaas.config",
        )
    if identity.token is not None:
        # A token may have to be requested first.
        identity = await in_daemon(identity.ready)
    requests = login_requests(identity, connection.name, random_bytes)
    request = next(requests)
    while True:
        response = await connection.request(request, timeout_ms=timeout_ms)
        try:
            request = requests.send(response)
        except StopIteration:
            return
