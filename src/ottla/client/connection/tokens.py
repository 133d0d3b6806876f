"""The source of a client's OAUTHBEARER tokens: its settings, or the program itself."""

import os
from collections.abc import Mapping
from typing import Final

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.declaration.setting import Value
from ottla.base.settings.tables import BROKER_SETTINGS
from ottla.network.oauth.options import TokenOptions, token_options, token_source
from ottla.network.oauth.tokens import TokenSource
from ottla.security.sasl.bearer import MECHANISM, Supplier
from ottla.security.sasl.jaas import parse_jaas

_suppliers: Final[list[Supplier]] = []


def supply_tokens(supplier: Supplier | None) -> None:
    """Let `supplier` provide the tokens of all clients that this process creates from now on.

    It returns a JWT as text, or a `Token`. It is called in a thread when a client logs in and most
    of the last token's lifetime is over, and may block. None: use
    `sasl.oauthbearer.token.endpoint.url` again. The settings (OTTLA_CONFIG) name the mechanism,
    OAUTHBEARER; no other setting is needed.
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
