"""OAUTHBEARER: tokens signed with a key of the listener's issuer."""

from ottla.base.clock import Clock
from ottla.broker.login.exchange import Stepped
from ottla.broker.login.jwks import Jwks
from ottla.security.jwt.claims import Claims, TokenPolicy
from ottla.security.jwt.verify import UnknownKey, verify_token
from ottla.security.sasl.bearer import OtherName, RefusedToken, read_bearer


class BearerTokens:
    """Judges the tokens of one listener."""

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

        A refused token gets an answer; the client's next message fails the login. Kafka would
        accept another token instead of that message.
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
