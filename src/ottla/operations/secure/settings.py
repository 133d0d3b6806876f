"""The settings of secured brokers and their data folder; checks for contradicting settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import write_private
from ottla.base.settings import BrokerSettings, properties_text
from ottla.base.settings.listeners import (
    advertised_addresses,
    inter_broker_address,
    is_wildcard,
    listen_addresses,
)
from ottla.operations.secure.login import MECHANISM, PROTOCOL, ClientLogin, jaas, kept_password
from ottla.security.principal import ANONYMOUS, Principal, parse_super_users

ADMINISTRATOR: Final = "admin"
# The user as which brokers log in to each other. It needs no ACLs: brokers prove a secret.
BROKERS: Final = "broker"

_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_STORES: Final = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")
_HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"
_INTER_BROKER: Final = ("inter.broker.listener.name", "security.inter.broker.protocol")


@dataclass(frozen=True, slots=True)
class SecureFolder:
    """The paths of the files in the data folder, which is an absolute path."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def certificate(self) -> Path:
        """Return the file with the brokers' key, followed by their certificate."""
        return self.folder / "server.pem"

    @property
    def password(self) -> Path:
        """Return the file with the administrator's password."""
        return self.folder / "admin.password"

    @property
    def broker_password(self) -> Path:
        """Return the file with the password by which brokers log in to each other."""
        return self.folder / "broker.password"

    @property
    def for_java(self) -> Path:
        return self.folder / "client.properties"

    @property
    def for_librdkafka(self) -> Path:
        return self.folder / "librdkafka.properties"

    @property
    def stores(self) -> dict[str, str]:
        """Return the key store and trust store settings of brokers."""
        return {
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.location": str(self.authority),
        }

    @property
    def is_there(self) -> bool:
        """Whether brokers of this folder were started with --secure.

        Raises PermissionError if the folder belongs to another user.
        """
        return any(path.exists() for path in (self.password, self.authority_key, self.for_java))

    def login(self) -> ClientLogin:
        """Return the administrator's login; create a password if there is none.

        Raises OttlaError, OSError.
        """
        return ClientLogin(ADMINISTRATOR, kept_password(self.password), str(self.authority))

    def write_clients(self) -> None:
        """Write the clients' settings, with the present folder and password. Raises OSError."""
        login = self.login()
        for path, settings in (
            (self.for_java, login.for_java()),
            (self.for_librdkafka, login.for_librdkafka()),
        ):
            text = properties_text(settings).encode()
            if not path.exists() or path.read_bytes() != text:
                write_private(path, text)


def secured(given: Mapping[str, str], stores: Mapping[str, str]) -> dict[str, str]:
    """Return the settings to add to `given`, which include listeners.

    `stores` are the settings `ssl.keystore.…` and `ssl.truststore.…` for PEM. Given settings
    are never overridden. Raises OttlaError(INVALID_CONFIG) if one contradicts security.
    """
    added = {
        "security.inter.broker.protocol": PROTOCOL,
        "sasl.enabled.mechanisms": MECHANISM,
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        **stores,
        "authorizer.class.name": _AUTHORIZER,
        "super.users": f"User:{ADMINISTRATOR}",
        "allow.everyone.if.no.acl.found": "false",
    }
    if not given.keys().isdisjoint(_INTER_BROKER):
        del added["security.inter.broker.protocol"]
    _check_stores(given)
    _check(BrokerSettings({**added, **given}), given)
    return {name: text for name, text in added.items() if name not in given}


def broker_login(given: Mapping[str, str], password: str) -> dict[str, str]:
    """Return the settings to add if there are several brokers, which log in to each other."""
    added = {
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "sasl.jaas.config": jaas(BROKERS, password),
    }
    return {name: text for name, text in added.items() if name not in given}


def certificate_hosts(settings: BrokerSettings) -> list[str]:
    """Return the host names by which clients reach the listeners, if the settings name them.

    Raises OttlaError(INVALID_CONFIG) for a name that a certificate cannot contain.
    """
    listening = [each.host for each in listen_addresses(settings)]
    advertised = [each.host for each in advertised_addresses(settings).values()]
    named = [host for host in (*advertised, *listening) if not is_wildcard(host)]
    for host in named:
        if not host.isascii():
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"the host name {host} cannot stand in a certificate: write it in its form in ASCII"
                " (xn--…)",
            )
    return list(dict.fromkeys(named))


def _check_stores(given: Mapping[str, str]) -> None:
    for name in given:
        own = name.split(".", 3)[-1] if name.startswith("listener.name.") else name
        if own.startswith(_STORES):
            raise _contradiction(
                name,
                "the certificates are made there, and clients are given their authority: put your"
                " own in the data folder as ca.pem and server.pem, without a ca.key",
            )


def _check(settings: BrokerSettings, given: Mapping[str, str]) -> None:
    """Refuse settings that admit a client without TLS or without a login, or that skip ACLs."""
    for address in listen_addresses(settings):
        if not address.is_tls:
            raise _contradiction(
                "listeners",
                f"{address.name} is a {address.protocol} listener: make all of them {PROTOCOL}",
            )
        mechanisms = settings.texts_of_listener(address.name, "sasl.enabled.mechanisms")
        if address.is_sasl and MECHANISM not in mechanisms:
            raise _contradiction(
                f"sasl.enabled.mechanisms of listener {address.name}",
                f"{ADMINISTRATOR} logs in by {MECHANISM}: add it",
            )
    if not any(address.is_sasl for address in listen_addresses(settings)):
        raise _contradiction("listeners", f"{ADMINISTRATOR} logs in on a {PROTOCOL} one: add it")
    _check_strangers(settings)
    _check_brokers(settings)
    if settings.text("audit.log.enable") == "false":
        raise _contradiction("audit.log.enable", "it has what was denied and changed: leave it out")
    if not settings.text("authorizer.class.name"):
        raise _contradiction("authorizer.class.name", "without it everything is allowed")
    if settings.flag("allow.everyone.if.no.acl.found"):
        raise _contradiction(
            "allow.everyone.if.no.acl.found", "it opens what no ACL protects to every user"
        )
    administrator = Principal("User", ADMINISTRATOR)
    super_users = parse_super_users(given.get("super.users", str(administrator)))
    if ANONYMOUS in super_users:
        raise _contradiction("super.users", f"{ANONYMOUS} is each client that does not log in")
    if administrator not in super_users:
        raise _contradiction("super.users", f"add {administrator}, whom clients log in as")


def _check_strangers(settings: BrokerSettings) -> None:
    """Refuse a listener that admits clients without a login or a certificate."""
    auth = "ssl.client.auth"
    for address in listen_addresses(settings):
        own = settings.of_listener(address.name, auth) or settings.text(auth)
        if not address.is_sasl and own != "required":
            raise _contradiction(
                "listeners",
                f"{address.name} lets clients in that show neither a login nor a certificate: make"
                f" it {PROTOCOL}, or set listener.name.{address.name.lower()}.{auth}=required",
            )


def _check_brokers(settings: BrokerSettings) -> None:
    """Refuse settings by which brokers would communicate without encryption."""
    protocol = settings.text("security.inter.broker.protocol")
    if "security.inter.broker.protocol" in settings.static and not protocol.endswith("SSL"):
        raise _contradiction(
            "security.inter.broker.protocol",
            f"{protocol} is without TLS, and no listener is: leave it out, or set {PROTOCOL}",
        )
    address = inter_broker_address(settings)
    checks = settings.of_listener(address.name, _HOST_CHECK)
    if not (settings.text(_HOST_CHECK) if checks is None else checks):
        raise _contradiction(
            _HOST_CHECK, "brokers would accept the certificate of any other machine as a broker's"
        )


def _contradiction(name: str, why: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{name} contradicts --secure: {why}; or leave --secure out, and give all settings"
        " yourself (docs/how-to/secure-a-broker.md)",
    )
