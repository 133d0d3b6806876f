"""Creates the dialer for connections to other brokers: over TLS if their listener uses it."""

from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import inter_broker_address
from ottla.network.dialer import Dialer, LoopDialer
from ottla.network.tls.options import TlsOptions, listener_options
from ottla.network.tls.source import client_source


def new_dialer(settings: BrokerSettings) -> Dialer:
    """Return a dialer for the brokers' listener. Raises OttlaError(INVALID_CONFIG)."""
    address = inter_broker_address(settings)
    silence_ms_max = settings.integer("broker.session.timeout.ms")
    if not address.is_tls:
        return LoopDialer(silence_ms_max)

    def options() -> TlsOptions:
        return listener_options(settings, address.name, is_sasl=address.is_sasl)

    return LoopDialer(silence_ms_max, client_source("connections to brokers", options))
