"""The TLS and login settings of clients, and the sources of OAUTHBEARER tokens."""

import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE, require_path
from ottla.base.settings.properties import parse_properties
from ottla.base.settings.tables import BROKER_SETTINGS
from ottla.base.settings.tables.setting import Value
from ottla.client.common.errors import BrokerRefused, ClientError, LoginName, with_login
from ottla.client.common.settings import check_names, check_use, unused
from ottla.network.oauth.options import TokenOptions, token_options, token_source
from ottla.network.oauth.tokens import TokenSource
from ottla.security.sasl import bearer
from ottla.security.sasl.bearer import MECHANISM, Supplier
from ottla.security.sasl.client import SaslIdentity, identity_of
from ottla.security.sasl.jaas import Jaas, parse_jaas

_suppliers: Final[list[Supplier]] = []


def supply_tokens(supplier: Supplier | None) -> None:
    """Let `supplier` provide the tokens of all clients that this process creates from now on.

    It returns a JWT as text, or an `OAuthBearerToken`. It is called in a thread, and may block; the
    calls are made when a client logs in and most of the last token's lifetime is over. With None,
    tokens come from `sasl.oauthbearer.token.endpoint.url` again. The settings (OTTLA_CONFIG)
    need only the mechanism, OAUTHBEARER.
    """
    _suppliers[:] = [] if supplier is None else [supplier]


def supplier_of_program() -> Supplier | None:
    """Return the supplier set by the program."""
    return _suppliers[0] if _suppliers else None


ALLOWED_VARIABLE: Final = "OTTLA_OAUTHBEARER_ALLOWED_URLS"
# The names of Kafka's settings in librdkafka.
_OTHER_NAMES: Final = {
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
# Clients of a process share their tokens.
_sources: Final[dict[TokenOptions, TokenSource]] = {}
_supplied: Final[dict[Supplier, TokenSource]] = {}


def source_of(config: Mapping[str, str]) -> TokenSource:
    """Return the token source of a client with these settings.

    Raises OttlaError(INVALID_CONFIG).
    """
    supplier = supplier_of_program()
    if supplier is not None:
        if supplier not in _supplied:
            # A program has one supplier, so tokens of a former one are dropped.
            _supplied.clear()
            _supplied[supplier] = TokenSource(supplier)
        return _supplied[supplier]

    def value(name: str) -> Value:
        text = config.get(name)
        if text is None and name in _OTHER_NAMES:
            text = config.get(_OTHER_NAMES[name])
        row = BROKER_SETTINGS[name]
        return row.default if text is None else row.parse(text)

    allowed = os.environ.get(ALLOWED_VARIABLE, "").split(",")
    options = token_options(
        value,
        _jaas_options(config),
        [url.strip() for url in allowed],
        f"the environment variable {ALLOWED_VARIABLE}",
    )
    if options not in _sources:
        _sources[options] = token_source(options)
    return _sources[options]


def _jaas_options(config: Mapping[str, str]) -> Mapping[str, str]:
    text = config.get("sasl.jaas.config")
    if text is None:
        return {}
    jaas = parse_jaas(text)
    if jaas.mechanism != MECHANISM:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "sasl.jaas.config is not of OAuthBearerLoginModule, and sasl.mechanism is "
            f"{MECHANISM}: correct one of them",
        )
    return jaas.options


# The path of a file of settings, or the settings. None means the file named by OTTLA_CONFIG.
ClientConfig = str | Mapping[str, str] | None
_FILES = ("ssl.keystore.location", "ssl.truststore.location")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The TLS and login of a client's connections; `repr` leaves the secrets out."""

    protocol: str = "PLAINTEXT"
    # The identity to log in with, on a SASL listener.
    identity: SaslIdentity | None = None
    # Returns the TLS context of a new connection, from the current contents of the files.
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False, compare=False)
    # The file of the settings; None if the program passed them.
    file: str | None = None
    # The file of the client's certificate.
    certificate: str | None = None

    @property
    def login_name(self) -> LoginName:
        """Return the client's identity towards brokers, as far as it is known here."""
        if self.identity is None:
            if self.certificate is None:
                return LoginName("does not log in", "User:ANONYMOUS", self.file)
            return LoginName(f"shows the certificate in {self.certificate}", None, self.file)
        if self.identity.token is not None:
            return LoginName(f"logs in by a token ({bearer.MECHANISM})", None, self.file)
        principal = None if self.identity.is_delegation_token else f"User:{self.identity.user}"
        return LoginName(f"logs in as {self.identity.name}", principal, self.file)


def security_by(config: ClientConfig) -> ClientSecurity:
    """Return the security for `config`. Raises ClientError."""
    if config is None:
        return default_security()
    return _of_file(config) if isinstance(config, str) else security_of(config)


def _of_file(path: str) -> ClientSecurity:
    config = read_config(path)
    with _naming(path):
        return replace(security_of(config), file=path)


def refusal_named(error: OttlaError, security: ClientSecurity) -> OttlaError:
    """Return the error; if access was refused, add the client's identity and settings file."""
    if not isinstance(error, BrokerRefused):
        return error
    code = ErrorCode(error.code)
    message = with_login(code, error.message, security.login_name, socket.gethostname())
    return error if message is None else BrokerRefused(code, message)


def default_security() -> ClientSecurity:
    """Return the security of the file that OTTLA_CONFIG names; no TLS or login without a file.

    Raises ClientError.
    """
    path = os.environ.get(CONFIG_VARIABLE)
    return ClientSecurity() if not path else _of_file(path)


def read_config(path: str) -> dict[str, str]:
    """Return the settings in a file, which may have only names that Kafka clients know.

    Raises ClientError.
    """
    if not os.path.exists(path):
        try:
            require_path(path, "the path of the client's settings")
        except OttlaError as error:
            raise ClientError(error.code, error.message) from None
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ClientError(
            ErrorCode.INVALID_CONFIG,
            f"the client's settings in {path} cannot be read on {socket.gethostname()}: {why}",
        ) from None
    with _naming(path):
        config = parse_properties(text)
        check_names(config)
    return _beside(path, config)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Add the file's name to errors about its settings."""
    try:
        yield
    except OttlaError as error:
        raise ClientError(error.code, f"{path}: {error.message}") from None


def _beside(path: str, config: dict[str, str]) -> dict[str, str]:
    """Return the settings with key files resolved: in the working directory, else near `path`."""
    for name in _FILES:
        place = config.get(name)
        if place and not os.path.isabs(place) and not os.path.exists(place):
            config[name] = os.path.join(os.path.dirname(os.path.abspath(path)), place)
    return config


def security_of(config: Mapping[str, str]) -> ClientSecurity:
    """Return the TLS and login that Kafka client settings describe; ignore other settings.

    Raises ClientError for a name that no Kafka client has, and if TLS or a login is set without
    security.protocol.
    """
    check_names(config)
    check_use(config)
    _note_unused(tuple(unused(config)))
    protocol = config.get("security.protocol", "PLAINTEXT").upper()
    try:
        tls = _tls(config) if protocol.endswith("SSL") else None
        if not protocol.startswith("SASL"):
            shown = config.get("ssl.keystore.location") if tls else None
            return ClientSecurity(protocol, tls=tls, certificate=shown)
        mechanism = config.get("sasl.mechanism") or config.get("sasl.mechanisms") or "GSSAPI"
        if mechanism == bearer.MECHANISM:
            identity = SaslIdentity(bearer.MECHANISM, "", "", source_of(config).token)
            return ClientSecurity(protocol, identity, tls)
        return ClientSecurity(protocol, identity_of(mechanism, _jaas(config, mechanism)), tls)
    except OttlaError as error:
        raise ClientError(error.code, error.message) from None


@cache
def _note_unused(names: tuple[str, ...]) -> None:
    """Log ignored settings once per process, because other clients may share the file."""
    if names:
        _log.info("no effect on this client have the settings %s", ", ".join(names))


def _tls(config: Mapping[str, str]) -> Callable[[], ssl.SSLContext]:
    # Commands start faster without these modules, which load the table of all settings.
    from ottla.network.tls.options import client_options  # noqa: PLC0415
    from ottla.network.tls.source import client_source  # noqa: PLC0415

    options = client_options(config)
    source = client_source("this client", lambda: options)
    return lambda: source.newest(time.monotonic())


def _jaas(config: Mapping[str, str], mechanism: str) -> Jaas:
    """Return `sasl.jaas.config`, or librdkafka's `sasl.username` and `sasl.password`."""
    text = config.get("sasl.jaas.config")
    if text is not None:
        return parse_jaas(text)
    family = "SCRAM" if mechanism.startswith("SCRAM") else mechanism
    named = {"username": config.get("sasl.username"), "password": config.get("sasl.password")}
    return Jaas(family, {name: value for name, value in named.items() if value})
