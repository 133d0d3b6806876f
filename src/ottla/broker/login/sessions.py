"""Open sessions by the credential they began with, which end when it is removed.

Kafka lets them go on until the client logs in again or goes away. A changed password ends none,
here as there: it can be changed while clients are at work.
"""

import asyncio
from typing import NamedTuple

from ottla.broker.cluster.admission import proven_broker
from ottla.network.connection import Connection

# How long the answers of requests that were served before may take; no more are served.
_ANSWERS_S = 0.1


class Credential(NamedTuple):
    """What is in the store: the passwords of a user, or a delegation token by its id."""

    kind: str
    name: str


def of_user(name: str) -> Credential:
    """The SCRAM credentials of a user."""
    return Credential("user", name)


def of_token(token_id: str) -> Credential:
    """A delegation token."""
    return Credential("token", token_id)


class OpenSessions:
    """The sessions on all listeners of a broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._connections: dict[Credential, dict[Connection, None]] = {}

    def __len__(self) -> int:
        """How many credentials clients are logged in with."""
        return len(self._connections)

    def add(self, credential: Credential, connection: Connection) -> None:
        """A client has logged in with it."""
        self._connections.setdefault(credential, {})[connection] = None

    def remove(self, credential: Credential, connection: Connection) -> None:
        """Its connection has ended."""
        held = self._connections.get(credential)
        if held is not None and held.pop(connection, connection) is None and not held:
            del self._connections[credential]

    def end(self, credential: Credential) -> None:
        """Serve the clients of a credential that was removed no more, but for brokers.

        These have proven that they know the cluster's secret.
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
