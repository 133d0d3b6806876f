"""The credentials of a broker for ZooKeeper, from its settings."""

import ssl
import time
from collections.abc import Callable
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.coordination.interface.client import StoreAccess
from ottla.metadata.paths import SENSITIVE
from ottla.network.tls.options import TlsOptions, client_options
from ottla.network.tls.source import client_source

_PREFIX = "zookeeper."
_TLS = (
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm",
    "ssl.keystore.location",
)
_STORES = ("ssl.keystore", "ssl.truststore")


def store_access(settings: BrokerSettings) -> StoreAccess:
    """Return the access set by `coordination.…` and `zookeeper.…`.

    Raises OttlaError(INVALID_CONFIG).
    """
    user = settings.text("coordination.user")
    password = settings.text("coordination.password")
    mechanism = settings.text("coordination.sasl.mechanism")
    if bool(user) != bool(password):
        # Otherwise the nodes would belong to a user with an empty password, or to every client.
        given, missing = ("user", "password") if user else ("password", "user")
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"coordination.{given} needs coordination.{missing}, which is not set or empty",
        )
    if mechanism and not user:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"coordination.sasl.mechanism={mechanism} needs coordination.user and"
            " coordination.password",
        )
    is_tls = settings.flag("zookeeper.ssl.client.enable")
    shows_certificate = is_tls and bool(settings.text("zookeeper.ssl.keystore.location"))
    access = StoreAccess(
        user=user,
        password=password,
        mechanism=mechanism,
        has_certificate=shows_certificate,
        sensitive=SENSITIVE,
        tls=_contexts(settings) if is_tls else None,
    )
    sets_acls = settings.flag("zookeeper.set.acl")
    if sets_acls and "zookeeper.set.acl" in settings.static and not access.identifies:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "zookeeper.set.acl=true needs an identity for which nodes are protected: set"
            " coordination.user and coordination.password, or zookeeper.ssl.keystore.location",
        )
    return replace(access, protects=access.identifies and sets_acls)


def _contexts(settings: BrokerSettings) -> Callable[[], ssl.SSLContext]:
    try:
        options = _tls_options(settings)
        source = client_source("connections to ZooKeeper", lambda: options)
    except OttlaError as error:
        raise OttlaError(
            error.code, f"TLS to ZooKeeper by zookeeper.ssl.…: {error.message}"
        ) from None
    return lambda: source.newest(time.monotonic())


def _tls_options(settings: BrokerSettings) -> TlsOptions:
    own = {name: settings.static.get(_PREFIX + name) for name in _TLS}
    named = {name: text for name, text in own.items() if text is not None}
    for store in _STORES:
        location = named.get(f"{store}.location", "")
        kind = settings.text(f"{_PREFIX}{store}.type").upper() or _kind_of(location)
        named[f"{store}.type"] = kind
    password = settings.text("zookeeper.ssl.keystore.password")
    # The password of a PEM store is that of its key; the store itself has no password.
    is_pem = named["ssl.keystore.type"] == "PEM"
    named["ssl.key.password" if is_pem else "ssl.keystore.password"] = password
    return client_options(named)


def _kind_of(location: str) -> str:
    return "PKCS12" if location.lower().endswith((".p12", ".pfx")) else "PEM"
