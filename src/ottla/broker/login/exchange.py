"""The interface between a login and a SASL mechanism, and the credentials in use.

Kafka keeps such sessions until the client logs in again or disconnects. A changed password ends no
session, as in Kafka: it can be changed while clients work.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.cluster.admission import proven_broker
from ottla.network.connection import Connection
from ottla.security.sasl.failures import AuthenticationFailed

# Time for answers to earlier requests before the connection closes; no new requests are served.
_ANSWERS_S = 0.1


class Credential(NamedTuple):
    """A stored credential: the SCRAM passwords of a user, or a delegation token by its id."""

    kind: str
    name: str


def of_user(name: str) -> Credential:
    """Return the SCRAM credentials of a user."""
    return Credential("user", name)


def of_token(token_id: str) -> Credential:
    """Return a delegation token."""
    return Credential("token", token_id)


class OpenSessions:
    """The sessions on all listeners of a broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._connections: dict[Credential, dict[Connection, None]] = {}

    def __len__(self) -> int:
        """Return the number of credentials that are in use."""
        return len(self._connections)

    def add(self, credential: Credential, connection: Connection) -> None:
        """Note that a client has logged in with the credential."""
        self._connections.setdefault(credential, {})[connection] = None

    def remove(self, credential: Credential, connection: Connection) -> None:
        """Note that the connection of a client has ended."""
        held = self._connections.get(credential)
        if held is not None and held.pop(connection, connection) is None and not held:
            del self._connections[credential]

    def end(self, credential: Credential) -> None:
        """Stop serving the clients of a removed credential, except other brokers.

        Those have proven that they know the cluster's secret.
        """
        for connection in self._connections.get(credential, ()):
            if proven_broker(connection) is None:
                connection.stop_reading()
                self._loop.call_later(_ANSWERS_S, _close, connection, credential)


def _close(connection: Connection, credential: Credential) -> None:
    what = "user" if credential.kind == "user" else "delegation token"
    if not connection.closed:
        connection.close(
            f"{connection.principal} logged in with the {what} {credential.name[:100]!r}, which was"
            " removed: make it again, or stop the client",
            f"removed {credential}",
        )


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
