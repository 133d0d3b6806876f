"""How a client reaches a secured cluster: the settings of Kafka's clients, from a file.

OTTLA_CONFIG names the file, for every client of the process; so does the option `--config` of
commands. Secrets are read from there only, never from arguments.
"""

import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE, require_path
from ottla.base.settings.properties import parse_properties
from ottla.client.common.denied import LoginName, with_login
from ottla.client.common.errors import BrokerRefused, ClientError
from ottla.client.common.settings import check_names, check_use, unused
from ottla.security.sasl import bearer
from ottla.security.sasl.client import SaslIdentity, identity_of
from ottla.security.sasl.jaas import Jaas, parse_jaas

# The path of a file of settings, or the settings; None: what OTTLA_CONFIG says.
ClientConfig = str | Mapping[str, str] | None
_FILES = ("ssl.keystore.location", "ssl.truststore.location")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """What a client does before its first request; the repr has no secrets."""

    protocol: str = "PLAINTEXT"
    # Who logs in, on a SASL listener.
    identity: SaslIdentity | None = None
    # The TLS context of a new connection, by the files as they are then.
    tls: Callable[[], ssl.SSLContext] | None = field(default=None, repr=False, compare=False)
    # Where the settings stand; None: they are a program's.
    file: str | None = None
    # The file of the certificate that it shows.
    certificate: str | None = None

    @property
    def login_name(self) -> LoginName:
        """Who it is to brokers, as far as is known here."""
        if self.identity is None:
            if self.certificate is None:
                return LoginName("does not log in", "User:ANONYMOUS", self.file)
            return LoginName(f"shows the certificate in {self.certificate}", None, self.file)
        if self.identity.token is not None:
            return LoginName(f"logs in by a token ({bearer.MECHANISM})", None, self.file)
        principal = None if self.identity.is_delegation_token else f"User:{self.identity.user}"
        return LoginName(f"logs in as {self.identity.name}", principal, self.file)


def security_by(config: ClientConfig) -> ClientSecurity:
    """What a client does that is given `config`. Raises ClientError."""
    if config is None:
        return default_security()
    return _of_file(config) if isinstance(config, str) else security_of(config)


def _of_file(path: str) -> ClientSecurity:
    config = read_config(path)
    with _naming(path):
        return replace(security_of(config), file=path)


def refusal_named(error: OttlaError, security: ClientSecurity) -> OttlaError:
    """The error; where access was refused, with who was refused, by which file and where."""
    if not isinstance(error, BrokerRefused):
        return error
    code = ErrorCode(error.code)
    message = with_login(code, error.message, security.login_name, socket.gethostname())
    return error if message is None else BrokerRefused(code, message)


def default_security() -> ClientSecurity:
    """That of the file which OTTLA_CONFIG names; nothing without it. Raises ClientError."""
    path = os.environ.get(CONFIG_VARIABLE)
    return ClientSecurity() if not path else _of_file(path)


def read_config(path: str) -> dict[str, str]:
    """The settings in a file, each of a name that Kafka's clients have. Raises ClientError."""
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
    """Let errors in settings say which file has them."""
    try:
        yield
    except OttlaError as error:
        raise ClientError(error.code, f"{path}: {error.message}") from None


def _beside(path: str, config: dict[str, str]) -> dict[str, str]:
    """The settings; files of keys that are not in the working folder are in that of `path`."""
    for name in _FILES:
        place = config.get(name)
        if place and not os.path.isabs(place) and not os.path.exists(place):
            config[name] = os.path.join(os.path.dirname(os.path.abspath(path)), place)
    return config


def security_of(config: Mapping[str, str]) -> ClientSecurity:
    """Of Kafka's settings, of which others than those of TLS and logins have no effect here.

    Raises ClientError for a name that no client of Kafka has, and where TLS or a login is set and
    security.protocol is not.
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
            return ClientSecurity(protocol, _bearer_identity(config), tls)
        return ClientSecurity(protocol, identity_of(mechanism, _jaas(config, mechanism)), tls)
    except OttlaError as error:
        raise ClientError(error.code, error.message) from None


@cache
def _note_unused(names: tuple[str, ...]) -> None:
    """Once per process, for a file that other clients read, too."""
    if names:
        _log.info("no effect on this client have the settings %s", ", ".join(names))


def _tls(config: Mapping[str, str]) -> Callable[[], ssl.SSLContext]:
    # Commands begin faster without these modules, which read the table of all settings.
    from ottla.network.tls.options import client_options  # noqa: PLC0415
    from ottla.network.tls.source import client_source  # noqa: PLC0415

    options = client_options(config)
    source = client_source("this client", lambda: options)
    return lambda: source.newest(time.monotonic())


def _bearer_identity(config: Mapping[str, str]) -> SaslIdentity:
    # As above: few clients need it.
    from ottla.client.connection.tokens import source_of  # noqa: PLC0415

    return SaslIdentity(bearer.MECHANISM, "", "", source_of(config).token)


def _jaas(config: Mapping[str, str], mechanism: str) -> Jaas:
    """`sasl.jaas.config`, or librdkafka's `sasl.username` and `sasl.password`."""
    text = config.get("sasl.jaas.config")
    if text is not None:
        return parse_jaas(text)
    family = "SCRAM" if mechanism.startswith("SCRAM") else mechanism
    named = {"username": config.get("sasl.username"), "password": config.get("sasl.password")}
    return Jaas(family, {name: value for name, value in named.items() if value})
