"""The interface between a login and a SASL mechanism, and the credentials in use.

A session ends when its stored credential is removed. Kafka keeps such a session until the client
logs in again or disconnects. A changed password ends no session, as in Kafka, so that it can be
changed while clients work.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.cluster.admission import proven_broker
from ottla.network.connection import Connection
from ottla.security.sasl.failures import AuthenticationFailed

# How long answers to earlier requests are still sent before the connection closes.
_ANSWERS_S = 0.1


class Credential(NamedTuple):
    """A stored credential: the SCRAM passwords of a user, or a delegation token by its id."""

    kind: str
    name: str


def of_user(name: str) -> Credential:
    """Return the `Credential` of a user with SCRAM passwords."""
    return Credential("user", name)


def of_token(token_id: str) -> Credential:
    """Return the `Credential` of a delegation token."""
    return Credential("token", token_id)


class OpenSessions:
    """The open sessions of clients on all listeners of a broker, by credential."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._connections: dict[Credential, dict[Connection, None]] = {}

    def __len__(self) -> int:
        """Return the number of credentials that are in use."""
        return len(self._connections)

    def add(self, credential: Credential, connection: Connection) -> None:
        """Add the connection of a client that has logged in with the credential."""
        self._connections.setdefault(credential, {})[connection] = None

    def remove(self, credential: Credential, connection: Connection) -> None:
        """Remove a connection that has ended."""
        held = self._connections.get(credential)
        if held is not None and held.pop(connection, connection) is None and not held:
            del self._connections[credential]

    def end(self, credential: Credential) -> None:
        """Stop serving the clients that logged in with a removed credential.

        Connections of other brokers stay open, because those know the cluster's secret.
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
    """The answer to a client's token; `user` is set once the client has logged in."""

    answer: bytes
    user: str | None = None
    # For how long the credential is still valid, in milliseconds; None if it does not expire.
    valid_ms: int | None = None
    # Set if the login failed. The answer contains the reason, and the next step raises this error.
    refusal: AuthenticationFailed | None = None
    # Whether the client logged in with a delegation token.
    by_token: bool = False
    # The stored credential that the client used; None if the user is from the settings or from a
    # token issuer.
    credential: Credential | None = None


class ServerExchange(Protocol):
    """The server side of the login exchange with one client."""

    async def step(self, token: bytes) -> Stepped:
        """Check the client's next token. Raises AuthenticationFailed."""
        ...


NewExchange = Callable[[], ServerExchange]
