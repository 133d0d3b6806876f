"""The interface between a login and a SASL mechanism."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.login.sessions import Credential
from ottla.security.sasl.failures import AuthenticationFailed


class Stepped(NamedTuple):
    """The answer to one token; `user` is set once the client has logged in."""

    answer: bytes
    user: str | None = None
    # How long the credential is still valid; None if it does not expire.
    valid_ms: int | None = None
    # Set if the login failed; the answer gives the reason, and the next step raises this error.
    refusal: AuthenticationFailed | None = None
    # Whether the client logged in with a delegation token.
    by_token: bool = False
    # The stored credential that the client used; None for users of the settings or of a token
    # issuer.
    credential: Credential | None = None


class ServerExchange(Protocol):
    """One exchange with one client."""

    async def step(self, token: bytes) -> Stepped:
        """Judge the client's next token. Raises AuthenticationFailed."""
        ...


NewExchange = Callable[[], ServerExchange]
