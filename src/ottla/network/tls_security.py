"""The TLS of one listener: its contexts, and the principals of client certificates."""

import asyncio
import ssl
from datetime import UTC, datetime

from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import (
    ListenerAddress,
    advertised_addresses,
    is_wildcard,
    listen_addresses,
)
from ottla.network.connection import Connection
from ottla.network.tls.context import server_context
from ottla.network.tls.material import load_material
from ottla.network.tls.options import TlsOptions, listener_options
from ottla.network.tls.source import server_source
from ottla.security.certificate import read_certificate
from ottla.security.mapping_rules import MappingRules
from ottla.security.principal import USER, Principal

_RULES = "ssl.principal.mapping.rules"


def _now() -> datetime:
    return datetime.now(UTC)


def check_listeners(settings: BrokerSettings) -> None:
    """Raise OttlaError(INVALID_CONFIG) if a TLS listener could not start with `settings`."""
    for address in listen_addresses(settings):
        if address.is_tls:
            options = listener_options(settings, address.name, is_sasl=address.is_sasl)
            server_context(options, load_material(options))


def _reached_at(settings: BrokerSettings, address: ListenerAddress) -> list[str]:
    """Return the host that clients connect to: the advertised one, or else the listener's own."""
    host = advertised_addresses(settings).get(address.name, address).host
    return [] if is_wildcard(host) else [host]


class ListenerTls:
    """The TLS settings of a listener.

    Raises OttlaError(INVALID_CONFIG) if they, or a file, are unusable.
    """

    def __init__(self, settings: BrokerSettings, address: ListenerAddress) -> None:
        def options() -> TlsOptions:
            return listener_options(settings, address.name, is_sasl=address.is_sasl)

        self._is_sasl = address.is_sasl
        hosts = _reached_at(settings, address)
        self._source = server_source(f"listener {address.name}", options, hosts)
        own_rules = settings.of_listener(address.name, _RULES)
        self._rules = MappingRules(str(own_rules or settings.text(_RULES)))

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection; renews it first if files have changed."""
        return self._source.newest(asyncio.get_running_loop().time())

    def identify(self, connection: Connection) -> str | None:
        """Set a connection's principal from its client certificate.

        Return the reason to close the connection, or None. Without a certificate the principal
        stays ANONYMOUS. On a SASL listener the login decides instead.
        """
        held = connection.peer_certificate()
        if held is None:
            return None
        try:
            subject, _, end = read_certificate(held)
        except ValueError as error:
            return None if self._is_sasl else f"its certificate cannot be read ({error})"
        if end <= _now():
            # The handshake does not check the expiry if a TLS 1.2 session is resumed.
            return f"its certificate expired {end:%Y-%m-%d %H:%M:%S} UTC: renew it"
        if self._is_sasl:
            return None
        name = self._rules.name(subject)
        if name is None:
            return (
                f"no rule of {_RULES} matches the name {subject!r} in its certificate: add one, or"
                " DEFAULT as the last"
            )
        connection.principal = Principal(USER, name)
        return None
