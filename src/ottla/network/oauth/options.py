"""Reads the OAUTHBEARER settings of the side that logs in: where its tokens come from."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.tables.setting import Value
from ottla.network.oauth.address import IssuerAddress, read_address
from ottla.network.oauth.issuer_reader import IssuerReader
from ottla.network.oauth.tokens import (
    ClientCredentials,
    Patience,
    TokenSource,
    from_endpoint,
    from_file,
)
from ottla.network.tls.options import PREFIX, client_options
from ottla.network.tls.source import client_source

_URL = "sasl.oauthbearer.token.endpoint.url"
_ID = "sasl.oauthbearer.client.credentials.client.id"
_SECRET = "sasl.oauthbearer.client.credentials.client.secret"


@dataclass(frozen=True, slots=True)
class TokenOptions:
    """The settings of a token source. The repr has no secrets."""

    endpoint: IssuerAddress
    credentials: ClientCredentials
    patience: Patience
    connect_s: float
    read_s: float
    window: float
    # The `ssl.…` options of the login module, for the connection to the endpoint.
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def token_options(
    value: Callable[[str], Value],
    jaas: Mapping[str, str],
    allowed: Collection[str],
    allowed_by: str,
) -> TokenOptions:
    """Read the options from settings (`value`) and from the login module's options (`jaas`).

    Raises OttlaError.
    """

    def text(name: str, option: str = "") -> str:
        return str(value(name) or jaas.get(option) or "")

    url = text(_URL)
    if not url:
        raise _bad(
            f"{_URL} is missing: OAUTHBEARER needs a token endpoint (https:) or a file (file:)"
        )
    endpoint = read_address(_URL, url, allowed, allowed_by)
    credentials = ClientCredentials(
        text(_ID, "clientId"),
        text(_SECRET, "clientSecret"),
        text("sasl.oauthbearer.scope", "scope"),
    )
    if endpoint.host and not (credentials.client_id and credentials.secret):
        raise _bad(
            "the token endpoint needs clientId and clientSecret: options of the login module in "
            f"sasl.jaas.config, or {_ID} and {_SECRET}"
        )
    return TokenOptions(
        endpoint,
        credentials,
        Patience(
            _seconds(value("sasl.login.retry.backoff.ms"), 0.1),
            _seconds(value("sasl.login.retry.backoff.max.ms"), 10.0),
        ),
        _seconds(value("sasl.login.connect.timeout.ms"), 10.0),
        _seconds(value("sasl.login.read.timeout.ms"), 10.0),
        float(str(value("sasl.login.refresh.window.factor"))),
        tls_of(jaas),
    )


def token_source(options: TokenOptions) -> TokenSource:
    """Create a token source, which has no token yet. Raises OttlaError for a bad trust store."""
    fetcher = new_fetcher(options.endpoint, options.tls, options.connect_s, options.read_s)
    if not options.endpoint.host:
        return TokenSource(from_file(fetcher), 0.0)
    supplier = from_endpoint(fetcher, options.credentials, options.patience)
    return TokenSource(supplier, options.window)


def tls_of(jaas: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the TLS settings for an issuer. As in Kafka they are options of the login module."""
    return tuple(sorted((name, given) for name, given in jaas.items() if name.startswith(PREFIX)))


def new_fetcher(
    endpoint: IssuerAddress,
    tls: tuple[tuple[str, str], ...],
    connect_s: float = 10.0,
    read_s: float = 10.0,
) -> IssuerReader:
    """Create a reader that verifies the server by the trust store in `tls`.

    Without a trust store it uses the certificate authorities of the system. Raises
    OttlaError(INVALID_CONFIG).
    """
    options = client_options(dict(tls))
    source = client_source(f"connections to {endpoint.url}", lambda: options)
    return IssuerReader(endpoint, lambda: source.newest(time.monotonic()), connect_s, read_s)


def _seconds(value: Value, default: float) -> float:
    return default if value is None else max(0.0, int(str(value)) / 1000)


def _bad(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, what)
