"""What a login needs of a SASL mechanism."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.login.sessions import Credential
from ottla.security.sasl.failures import AuthenticationFailed


class Stepped(NamedTuple):
    """The answer to one token; `user` once the client has logged in."""

    answer: bytes
    user: str | None = None
    # For how long the credential is still valid; None where it does not end.
    valid_ms: int | None = None
    # The login has failed, as the answer says; the next step raises it.
    refusal: AuthenticationFailed | None = None
    # Whether it was a delegation token.
    by_token: bool = False
    # What of the store let the client in; None for users of the settings and of an issuer.
    credential: Credential | None = None


class ServerExchange(Protocol):
    """One exchange with one client."""

    async def step(self, token: bytes) -> Stepped:
        """Judge the client's next token. Raises AuthenticationFailed."""
        ...


NewExchange = Callable[[], ServerExchange]
