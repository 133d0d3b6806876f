"""Reads Kafka's `ssl.*` settings into one value. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.tables import BROKER_SETTINGS
from ottla.base.settings.tables.setting import Value

# The cipher suites of TLS 1.3; the `ssl` module can only enable or disable all of them.
TLS_1_3 = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
_WITH = "_WITH_"


class Ciphers(NamedTuple):
    """The enabled cipher suites. The default enables all that OpenSSL considers safe."""

    # The suites for TLS 1.2, separated by colons; "" if only suites of TLS 1.3 are named.
    openssl: str = ""
    tls_1_2: bool = True
    tls_1_3: bool = True


ALL = Ciphers()


def read_ciphers(names: Iterable[str]) -> Ciphers:
    """Read a list of suites, named as `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` or as in OpenSSL."""
    named = list(names)
    if not named:
        return ALL
    older = [_openssl(name) for name in named if name not in TLS_1_3]
    return Ciphers(":".join(older), bool(older), len(older) < len(named))


def _openssl(name: str) -> str:
    if not name.startswith("TLS_") or _WITH not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition(_WITH)
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "")
    parts = [] if exchange == "RSA" else [exchange]
    return "-".join([*parts, cipher]).replace("_", "-")


PREFIX = "ssl."
_VERSIONS = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """A key store or a trust store: a file, or PEM text in the settings themselves.

    `what` is the common prefix of its settings: `ssl.keystore` or `ssl.truststore`.
    """

    what: str
    type: str = "JKS"
    location: str = ""
    password: str = field(default="", repr=False)
    # PEM text: the certificates, and in a key store also the key.
    certificates: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    @property
    def is_set(self) -> bool:
        """Return whether the settings name such a store."""
        return bool(self.location or self.certificates or self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """The TLS settings of one listener, or of one client."""

    keystore: StoreOptions = StoreOptions(what="ssl.keystore")
    truststore: StoreOptions = StoreOptions(what="ssl.truststore")
    key_password: str = field(default="", repr=False)
    versions: tuple[str, ...] = _VERSIONS
    ciphers: Ciphers = ALL
    # none, requested or required.
    client_auth: str = "none"
    # Whether a client compares the broker's host name with its certificate.
    checks_host: bool = True

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files of the keys and certificates."""
        return tuple(s.location for s in (self.keystore, self.truststore) if s.location)


def listener_options(settings: BrokerSettings, listener: str, *, is_sasl: bool) -> TlsOptions:
    """Read the TLS settings of a listener: `listener.name.<listener>.ssl.…`, else `ssl.…`.

    As in Kafka, a SASL_SSL listener requests client certificates only if its own setting, with the
    listener's prefix, says so. Raises OttlaError.
    """

    def value(name: str) -> Value:
        own = settings.of_listener(listener, name)
        if own is None and is_sasl and name == "ssl.client.auth":
            return "none"
        return settings.value(name) if own is None else own

    return _options(value)


def client_options(properties: Mapping[str, str]) -> TlsOptions:
    """Read the TLS settings of a client from its properties. Raises OttlaError."""

    def value(name: str) -> Value:
        row, text = BROKER_SETTINGS[name], properties.get(name)
        return row.default if text is None else row.parse(text)

    return _options(value)


def _options(value: Callable[[str], Value]) -> TlsOptions:
    def text(name: str) -> str:
        found = value(name)
        return "" if found is None else str(found)

    versions = _versions(value("ssl.enabled.protocols"))
    return TlsOptions(
        keystore=StoreOptions(
            what="ssl.keystore",
            type=text("ssl.keystore.type").upper(),
            location=text("ssl.keystore.location"),
            password=text("ssl.keystore.password"),
            certificates=pem_of(text("ssl.keystore.certificate.chain")),
            key=pem_of(text("ssl.keystore.key")),
        ),
        truststore=StoreOptions(
            what="ssl.truststore",
            type=text("ssl.truststore.type").upper(),
            location=text("ssl.truststore.location"),
            password=text("ssl.truststore.password"),
            certificates=pem_of(text("ssl.truststore.certificates")),
        ),
        key_password=text("ssl.key.password"),
        versions=versions,
        ciphers=read_ciphers(_texts(value("ssl.cipher.suites"))),
        client_auth=text("ssl.client.auth"),
        checks_host=_checks_host(text("ssl.endpoint.identification.algorithm")),
    )


def pem_of(text: str) -> str:
    r"""Return PEM from a properties file, in which `\n` or blanks separate its lines."""
    text = text.replace("\\n", "\n").strip()
    if not text or "\n" in text:
        return text
    lines: list[str] = []
    for part in (
        text.replace("-----BEGIN", "\n-----BEGIN").replace("-----END", "\n-----END").split("\n")
    ):
        if part.startswith("-----"):
            head, dashes, body = part[5:].partition("-----")
            lines.append(f"-----{head}{dashes}")
            lines += body.split()
        else:
            lines += part.split()
    return "\n".join(lines)


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _versions(value: Value) -> tuple[str, ...]:
    named = _texts(value)
    unknown = [name for name in named if name not in _VERSIONS]
    if unknown or not named:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"ssl.enabled.protocols: {', '.join(unknown) or 'nothing'} is not served, since older "
            f"versions than TLSv1.2 can be broken; choose among {', '.join(_VERSIONS)}",
        )
    return named


def _checks_host(algorithm: str) -> bool:
    if algorithm.lower() not in ("https", ""):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "ssl.endpoint.identification.algorithm is https, or empty for no comparison of names",
        )
    return bool(algorithm)
