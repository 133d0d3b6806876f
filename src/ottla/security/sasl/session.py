"""Decides which requests of a SASL connection are served, and when the client must log in again.

A core: the shell asks `judge` what to do with each request, does it, and reports the outcome.
Before a login only ApiVersions and the SASL requests are served (KIP-43, KIP-152), after the
session has expired only the SASL requests (KIP-368).
"""

from enum import Enum

from ottla.security.principal import Principal
from ottla.wire.api import ApiKey

# As in Kafka: a client may not keep the broker busy with logins.
_LOGINS_APART_MS = 1000


class LoginStep(Enum):
    """The possible actions for a request."""

    SERVE = "serve it as on any listener"
    VERSIONS = "serve it: it is ApiVersions"
    HANDSHAKE = "answer it, and report `agreed` or `failed`"
    TOKEN = "hand its token to the mechanism, and report `went_on`, `logged_in` or `failed`"
    WAIT = "offer it again when the token before it is judged"
    ILLEGAL = "answer ILLEGAL_SASL_STATE, and close"
    CLOSE = "close the connection"


class LoginState(Enum):
    """The login state of a connection."""

    BEGINNING = "ApiVersions or SaslHandshake comes next"
    VERSIONED = "SaslHandshake comes next"
    EXCHANGE = "SaslAuthenticate comes next"
    RAW_EXCHANGE = "a token without a header comes next"
    JUDGING = "a token is being judged"
    OPEN = "logged in"
    FAILED = "nothing more is served"


class SaslSession:
    """The session of one connection. Times are milliseconds of a clock that never goes back."""

    def __init__(self) -> None:
        self.state = LoginState.BEGINNING
        self.mechanism = ""
        # The logged-in principal; kept while the client logs in again.
        self.principal: Principal | None = None
        # When the session expires; None for never.
        self.expires_ms: int | None = None
        self._is_raw = False
        self._began_again_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client has logged in; `judge` also checks whether the session has expired."""
        return self.state is LoginState.OPEN

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a token without a header (SaslHandshake version 0)."""
        return self.state is LoginState.RAW_EXCHANGE

    def judge(self, api_key: int, now_ms: int) -> LoginStep:
        """Decide about a request. `api_key` is ignored if `takes_raw_tokens`."""
        match self.state:
            case LoginState.OPEN:
                return self._judge_open(api_key, now_ms)
            case LoginState.RAW_EXCHANGE:
                return LoginStep.TOKEN
            case LoginState.JUDGING:
                return LoginStep.WAIT
            case LoginState.EXCHANGE if api_key == ApiKey.SASL_AUTHENTICATE:
                return LoginStep.TOKEN
            case LoginState.BEGINNING if api_key == ApiKey.API_VERSIONS:
                return LoginStep.VERSIONS
            case LoginState.BEGINNING | LoginState.VERSIONED if api_key == ApiKey.SASL_HANDSHAKE:
                return LoginStep.HANDSHAKE
            case LoginState.EXCHANGE if api_key in (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS):
                return LoginStep.ILLEGAL
        return LoginStep.CLOSE

    def versions_served(self) -> None:
        """Note that ApiVersions was answered without an error."""
        assert self.state is LoginState.BEGINNING, self.state
        self.state = LoginState.VERSIONED

    def agreed(self, mechanism: str, *, is_raw: bool, now_ms: int) -> bool:
        """Note that a handshake chose a mechanism.

        Return False if it is not that of the first login.
        """
        assert self.state in (LoginState.BEGINNING, LoginState.VERSIONED, LoginState.OPEN), (
            self.state
        )
        if self.state is LoginState.OPEN:
            self._began_again_ms = now_ms
            if mechanism != self.mechanism:
                return False
        self.mechanism = mechanism
        self._is_raw = is_raw
        self.state = LoginState.RAW_EXCHANGE if is_raw else LoginState.EXCHANGE
        return True

    def judging(self) -> None:
        """Note that the mechanism is checking a token."""
        assert self.state in (LoginState.EXCHANGE, LoginState.RAW_EXCHANGE), self.state
        self.state = LoginState.JUDGING

    def went_on(self) -> None:
        """Note that the mechanism needs another token."""
        assert self.state is LoginState.JUDGING, self.state
        self.state = LoginState.RAW_EXCHANGE if self._is_raw else LoginState.EXCHANGE

    def logged_in(self, principal: Principal, lifetime_ms: int | None, now_ms: int) -> bool:
        """Note a completed login; return False if the principal has changed, which is a failure."""
        assert self.state is LoginState.JUDGING, self.state
        if self.principal is not None and self.principal != principal:
            self.failed()
            return False
        self.principal = principal
        self.expires_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        self.state = LoginState.OPEN
        return True

    def failed(self) -> None:
        """Note a failed login: the connection must be closed."""
        self.state = LoginState.FAILED

    def _judge_open(self, api_key: int, now_ms: int) -> LoginStep:
        may_log_in = self.expires_ms is not None and (
            self._began_again_ms is None or now_ms - self._began_again_ms >= _LOGINS_APART_MS
        )
        if api_key == ApiKey.SASL_HANDSHAKE and may_log_in:
            return LoginStep.HANDSHAKE
        if self.expires_ms is not None and now_ms >= self.expires_ms:
            return LoginStep.CLOSE
        return LoginStep.SERVE


def session_lifetime_ms(credential_ms: int | None, reauth_ms_max: int) -> int | None:
    """Return how long a session lasts; None if it does not expire.

    `credential_ms` is the remaining validity of the credential, if it expires; `reauth_ms_max` is
    `connections.max.reauth.ms`, 0 if it sets no limit.
    """
    ends = [reauth_ms_max] if reauth_ms_max > 0 else []
    if credential_ms is not None:
        ends.append(max(0, credential_ms))
    return min(ends, default=None)
