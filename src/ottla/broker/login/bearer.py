"""Logins by OAUTHBEARER, and the settings of a listener's issuer."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import ListenerAddress
from ottla.base.settings.tables.setting import Value
from ottla.broker.login.exchange import NewExchange, Stepped
from ottla.broker.login.jwks import Jwks
from ottla.broker.runtime.runtime import Runtime
from ottla.network.oauth.address import read_address
from ottla.network.oauth.options import new_fetcher, tls_of
from ottla.security.jwt.claims import Claims, TokenPolicy
from ottla.security.jwt.verify import UnknownKey, verify_token
from ottla.security.sasl.bearer import MECHANISM, OtherName, RefusedToken, read_bearer
from ottla.security.sasl.jaas import parse_jaas


class BearerTokens:
    """Checks the tokens that clients send to one listener."""

    def __init__(self, jwks: Jwks, policy: TokenPolicy, clock: Clock) -> None:
        self._jwks = jwks
        self._policy = policy
        self._clock = clock

    async def check(self, token: str) -> Claims:
        """Return the claims of a valid token. Raises RefusedToken."""
        keys = await self._jwks.keys()
        try:
            return verify_token(token, keys, self._policy, self._now_s())
        except UnknownKey:
            if not await self._jwks.look_again():
                raise
        return verify_token(token, await self._jwks.keys(), self._policy, self._now_s())

    def valid_ms(self, claims: Claims) -> int:
        """Return how long a token is still valid, without the allowed clock skew, as in Kafka."""
        return max(0, int((claims.expires_s - self._now_s()) * 1000))

    def _now_s(self) -> float:
        return self._clock.now_ms() / 1000


class BearerExchange:
    """Implements `ServerExchange`."""

    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens
        self._refusal: RefusedToken | None = None

    async def step(self, token: bytes) -> Stepped:
        """See `ServerExchange`.

        A refused token is answered with the reason, and the client's next message fails the login.
        Kafka would also accept a new token as that message.
        """
        if self._refusal is not None:
            raise self._refusal
        login = read_bearer(token)
        try:
            claims = await self._tokens.check(login.token)
        except RefusedToken as refusal:
            self._refusal = refusal
            return Stepped(refusal.message.encode(), refusal=refusal)
        if login.acts_as not in ("", claims.subject):
            raise OtherName(login.acts_as, claims.subject)
        return Stepped(b"", claims.subject, self._tokens.valid_ms(claims))


_log = logging.getLogger(__name__)

_PREFIX: Final = "sasl.oauthbearer."
_URL: Final = f"{_PREFIX}jwks.endpoint.url"
_ALLOWED: Final = f"{_PREFIX}allowed.urls"
_HANDLER: Final = "sasl.server.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
# The callback handlers whose work Ottla's own code does. Kafka requires that they are configured.
_HANDLERS: Final = (
    f"{_PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)


def bearer_exchanges(
    settings: BrokerSettings, address: ListenerAddress, runtime: Runtime
) -> NewExchange:
    """Return the OAUTHBEARER exchanges of a listener. Raises OttlaError(INVALID_CONFIG)."""

    def value(name: str) -> Value:
        return settings.of_mechanism(address.name, MECHANISM, name)

    _check_listener(settings, address)
    url = value(_URL)
    if not url:
        raise _bad(
            f"OAUTHBEARER of listener {address.name} needs {_URL}, the address of its issuer's "
            "keys: unsecured tokens, which Kafka accepts without it, let in whom they please"
        )
    endpoint = read_address(_URL, str(url), settings.texts(_ALLOWED), _ALLOWED)
    policy = _policy(address.name, value)
    fetcher = new_fetcher(endpoint, tls_of(_jaas_options(settings, address.name)))
    try:
        # An optional dependency: the other mechanisms need no library.
        from ottla.broker.login.bearer import BearerExchange, BearerTokens  # noqa: PLC0415
        from ottla.broker.login.jwks import Jwks, JwksPace  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise _bad(
            f"OAUTHBEARER needs the Python package {error.name}: install ottla[security] on this "
            "machine"
        ) from None
    pace = JwksPace(
        _integer(value(f"{_PREFIX}jwks.endpoint.refresh.ms")),
        _integer(value(f"{_PREFIX}jwks.endpoint.retry.backoff.ms")),
        _integer(value(f"{_PREFIX}jwks.endpoint.retry.backoff.max.ms")),
    )
    tokens = BearerTokens(Jwks(endpoint.url, fetcher.get, pace, runtime), policy, runtime.clock)
    return lambda: BearerExchange(tokens)


def _jaas_options(settings: BrokerSettings, listener: str) -> Mapping[str, str]:
    """Return the options of the listener's login module; none if it is not configured."""
    text = settings.of_mechanism(listener, MECHANISM, "sasl.jaas.config")
    jaas = None if text is None else parse_jaas(str(text))
    return {} if jaas is None or jaas.mechanism != MECHANISM else jaas.options


def _check_listener(settings: BrokerSettings, address: ListenerAddress) -> None:
    if not address.is_tls:
        _log.warning(
            "listener %s has no TLS: the network sees the tokens of clients, and can use them; "
            "make it a SASL_SSL listener",
            address.name,
        )
    handler = settings.of_mechanism(address.name, MECHANISM, _HANDLER)
    if handler and handler not in _HANDLERS:
        raise _bad(
            f"{_HANDLER} of listener {address.name}: Ottla loads no classes, and judges tokens as "
            f"{_HANDLERS[0]} does; name that one, or none"
        )


def _policy(listener: str, value: Callable[[str], Value]) -> TokenPolicy:
    audiences, issuer = (
        value(f"{_PREFIX}expected.audience"),
        value(f"{_PREFIX}expected.issuer"),
    )
    policy = TokenPolicy(
        frozenset(audiences if isinstance(audiences, tuple) else ()),
        str(issuer) if issuer else None,
        _name(value, f"{_PREFIX}sub.claim.name"),
        _name(value, f"{_PREFIX}scope.claim.name"),
        max(0, _integer(value(f"{_PREFIX}clock.skew.seconds"))),
    )
    missing = [
        name
        for name, given in (
            (f"{_PREFIX}expected.audience", policy.audiences),
            (f"{_PREFIX}expected.issuer", policy.issuer),
        )
        if not given
    ]
    if missing:
        _log.warning(
            "listener %s accepts tokens that its issuer has made for others: set %s",
            listener,
            " and ".join(missing),
        )
    return policy


def _name(value: Callable[[str], Value], setting: str) -> str:
    name = str(value(setting) or "").strip()
    if not name:
        raise _bad(f"{setting} is empty; it is the name of a claim")
    return name


def _integer(value: Value) -> int:
    return int(str(value))


def _bad(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, what)
