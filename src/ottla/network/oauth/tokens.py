"""The OAuth token of this process: requested when needed, and kept while valid."""

import base64
import json
import logging
import re
import time
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.oauth.issuer_reader import FetchFailed, IssuerReader
from ottla.security.jwt.claims import is_time
from ottla.security.jwt.header import part_of_token
from ottla.security.sasl.bearer import TOKEN_BYTES_MAX, OAuthBearerToken, Supplier

_log = logging.getLogger(__name__)

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# When a request for a new token fails, the old one is used for this long before the next attempt.
_AGAIN_S: Final = 5.0


class TokenSource:
    """Keeps a token until the fraction `window` of its lifetime is over. Thread-safe."""

    def __init__(
        self, supplier: Supplier, window: float = 0.8, now_s: Callable[[], float] = time.time
    ) -> None:
        self._supplier = supplier
        self._window = window
        self._now_s = now_s
        self._lock = Lock()
        self._token: OAuthBearerToken | None = None
        self._renew_s = 0.0

    def token(self) -> str:
        """Return a valid token. Raises OttlaError, whose message has a remedy and no secret."""
        with self._lock:
            now_s, kept = self._now_s(), self._token
            if kept is not None and now_s < self._renew_s:
                return kept.text
            try:
                token = _checked(self._supplier())
            except OttlaError as error:
                if kept is None or kept.expires_s is None or now_s >= kept.expires_s:
                    raise
                _log.warning("the former token is used until it expires: %s", error.message)
                self._renew_s = min(now_s + _AGAIN_S, kept.expires_s)
                return kept.text
            self._token = token
            self._renew_s = 0.0
            if token.expires_s is not None:
                self._renew_s = now_s + (token.expires_s - now_s) * self._window
            return token.text


class ClientCredentials(NamedTuple):
    """The credentials for a token endpoint (RFC 6749, 4.4); the repr has no secret."""

    client_id: str
    secret: str
    scope: str

    def __repr__(self) -> str:
        return f"ClientCredentials({self.client_id!r})"


class Patience(NamedTuple):
    """The retries of a failed token request: the backoff and the total time, in seconds."""

    backoff_s: float = 0.1
    all_s: float = 10.0


def from_endpoint(
    fetcher: IssuerReader,
    credentials: ClientCredentials,
    patience: Patience,
    now_s: Callable[[], float] = time.time,
) -> Supplier:
    """Return a supplier that requests tokens from a token endpoint."""
    pair = f"{credentials.client_id}:{credentials.secret}".encode()
    headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    form = {"grant_type": "client_credentials"}
    if credentials.scope:
        form["scope"] = credentials.scope
    where = f"sasl.oauthbearer.token.endpoint.url {fetcher.endpoint.url}"

    def supply() -> OAuthBearerToken:
        try:
            answer = _patiently(lambda: fetcher.post(form, headers), patience)
        except FetchFailed as error:
            if error.is_final:
                raise _no_token(f"{where}: {error}; check clientId and clientSecret") from None
            # The same error as for an unavailable broker, so that clients retry in the same way.
            raise _no_token(f"{where}: {error}", ErrorCode.NETWORK_EXCEPTION) from None
        return _answered(answer, where, now_s())

    return supply


def from_file(fetcher: IssuerReader) -> Supplier:
    """Return a supplier that reads the token from a file, anew for each login."""

    def supply() -> OAuthBearerToken:
        try:
            text = fetcher.get().decode("ascii", "replace").strip()
        except FetchFailed as error:
            where = f"sasl.oauthbearer.token.endpoint.url {fetcher.endpoint.url}"
            raise _no_token(f"{where}: {error}") from None
        # Reading it each time costs little, and a replaced file takes effect at once.
        return OAuthBearerToken(text)

    return supply


def _patiently(ask: Callable[[], bytes], patience: Patience) -> bytes:
    until_s, backoff_s = time.monotonic() + patience.all_s, patience.backoff_s
    while True:
        try:
            return ask()
        except FetchFailed as error:
            if error.is_final or time.monotonic() + backoff_s > until_s:
                raise
        time.sleep(backoff_s)
        backoff_s *= 2


def _answered(answer: bytes, where: str, now_s: float) -> OAuthBearerToken:
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        document = None
    text = document.get("access_token") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(text, str):
        raise _no_token(f"{where}: its answer has no access_token; is it the token endpoint?")
    lasts_s = document.get("expires_in")
    if is_time(lasts_s):
        return OAuthBearerToken(text, now_s + lasts_s)
    return OAuthBearerToken(text)


def _checked(given: OAuthBearerToken | str) -> OAuthBearerToken:
    """Return a token that can be sent; its expiry comes from its own claims if not given."""
    token = given if isinstance(given, OAuthBearerToken) else OAuthBearerToken(given)
    if len(token.text) > TOKEN_BYTES_MAX or _TOKEN.fullmatch(token.text) is None:
        raise _no_token("what was given for one is empty, too long, or has other characters in it")
    if token.expires_s is None:
        parts = token.text.split(".")
        claims = part_of_token(parts[1]) if len(parts) == 3 else None
        expires_s = None if claims is None else claims.get("exp")
        if is_time(expires_s):
            return OAuthBearerToken(token.text, expires_s)
    return token


def _no_token(why: str, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED) -> OttlaError:
    return OttlaError(code, f"there is no token to log in with: {why}")
