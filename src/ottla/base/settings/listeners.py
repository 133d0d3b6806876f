"""Reads `listeners` and `advertised.listeners`."""

from ipaddress import ip_address
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.broker import BrokerSettings

# The security protocols that listeners support.
_SERVED = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TLS = ("SSL", "SASL_SSL")


class ListenerAddress(NamedTuple):
    """One entry of `listeners`. An empty host means every interface; port 0 means any free port."""

    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    @property
    def is_tls(self) -> bool:
        """Whether its connections begin with a TLS handshake."""
        return self.protocol in _TLS

    @property
    def is_sasl(self) -> bool:
        """Whether its clients log in by SASL."""
        return self.protocol.startswith("SASL_")


def is_wildcard(host: str) -> bool:
    """Whether this host means every interface, so that no client can connect to the name."""
    try:
        return not host or ip_address(host).is_unspecified
    except ValueError:
        return False


def listen_addresses(settings: BrokerSettings) -> tuple[ListenerAddress, ...]:
    """Return the addresses to listen on. Raises OttlaError(INVALID_CONFIG).

    Listeners of Kafka's controllers (`controller.listener.names`) are left out: Ottla has no
    controllers, and Kafka's server.properties names such a listener.
    """
    addresses = _parse(settings, "listeners")
    if not addresses:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG, "listeners is empty; write for example PLAINTEXT://:9092"
        )
    protocols = _protocols(settings)
    for address in addresses:
        protocol = protocols.get(address.name, address.name)
        if protocol not in _SERVED:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"listeners: {address.name} is a {protocol} listener, and there are only "
                f"{' and '.join(_SERVED)} ones; write PLAINTEXT://{address.host}:{address.port}, "
                "or map the name in listener.security.protocol.map",
            )
    return tuple(a._replace(protocol=protocols.get(a.name, a.name)) for a in addresses)


def advertised_addresses(settings: BrokerSettings) -> dict[str, ListenerAddress]:
    """Return the advertised addresses by listener; empty if none is advertised."""
    advertised = {a.name: a for a in _parse(settings, "advertised.listeners")}
    if not advertised:
        return advertised
    names = {address.name for address in listen_addresses(settings)}
    for name, address in advertised.items():
        if name not in names:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"advertised.listeners: {name} is not among the names in listeners "
                f"({', '.join(sorted(names))})",
            )
        if is_wildcard(address.host):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"advertised.listeners: {name} needs an address clients can reach; leave the "
                "setting out and each client gets the address it reached",
            )
    return advertised


def inter_broker_listener(settings: BrokerSettings) -> str:
    """Return the name of the inter-broker listener. Raises OttlaError(INVALID_CONFIG)."""
    return inter_broker_address(settings).name


def inter_broker_address(settings: BrokerSettings) -> ListenerAddress:
    """Return the address of the inter-broker listener. Raises OttlaError(INVALID_CONFIG)."""
    addresses = {address.name: address for address in listen_addresses(settings)}
    names = list(addresses)
    chosen = settings.value("inter.broker.listener.name")
    if chosen is not None:
        if "security.inter.broker.protocol" in settings.static:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should "
                "be set: remove the second",
            )
        name = str(chosen).upper()
        if name not in names:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"inter.broker.listener.name: {name} is not among the names in listeners "
                f"({', '.join(sorted(names))})",
            )
        return addresses[name]
    protocol = settings.text("security.inter.broker.protocol")
    if protocol in names:
        return addresses[protocol]
    if protocol == "PLAINTEXT":
        return addresses[names[0]]
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"security.inter.broker.protocol: there is no listener {protocol} in listeners "
        f"({', '.join(sorted(names))}); set inter.broker.listener.name",
    )


def without_listener(settings: BrokerSettings, name: str) -> str:
    """Return the error for a setting of an unknown listener, with the known names; else ""."""
    names = [address.name.lower() for address in listen_addresses(settings)]
    if not name.startswith("listener.name.") or name.split(".")[2] in names:
        return ""
    return (
        "there is no such listener; in such settings names are in small letters, and listeners has"
        f" {', '.join(names)}"
    )


def _protocols(settings: BrokerSettings) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in settings.text("listener.security.protocol.map").split(","):
        name, _, protocol = item.strip().partition(":")
        pairs[name.upper()] = protocol.upper()
    return pairs


def _parse(settings: BrokerSettings, setting: str) -> tuple[ListenerAddress, ...]:
    addresses: dict[str, ListenerAddress] = {}
    controllers = {name.upper() for name in settings.texts("controller.listener.names")}
    for entry in settings.texts(setting):
        name, _, rest = entry.partition("://")
        host, _, port = rest.rpartition(":")
        name = name.upper()
        if name in controllers:
            continue
        if name in addresses:
            raise OttlaError(ErrorCode.INVALID_CONFIG, f"{setting}: {name} is given twice")
        addresses[name] = ListenerAddress(name, host.removeprefix("[").removesuffix("]"), int(port))
    return tuple(addresses.values())
