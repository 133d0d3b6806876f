"""The identity of a client of ZooKeeper, its TLS connections, and the granted session timeout.

Runs on kazoo's threads. A failure is reported with cause and remedy; kazoo then tries again.
"""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import ConnectionDropped
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Connect
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from ottla.coordination.interface.client import StoreAccess


@dataclass(frozen=True, slots=True)
class ZookeeperSecurity:
    """The access of one client, in kazoo's terms."""

    access: StoreAccess = field(default_factory=StoreAccess)

    @property
    def auth_data(self) -> list[tuple[str, str]] | None:
        """The credentials that kazoo sends after each connect, for ZooKeeper's scheme `digest`."""
        if not self.access.user:
            return None
        return [("digest", f"{self.access.user}:{self.access.password}")]

    @property
    def tls(self) -> Callable[[], ssl.SSLContext] | None:
        return self.access.tls

    def acl(self, path: str) -> list[object]:
        """The ACL of one of our nodes: all rights for its creator.

        Other clients may read the nodes that are not sensitive.
        """
        if not self.access.protects:
            return list(OPEN_ACL_UNSAFE)
        return list(CREATOR_ALL_ACL if self.access.is_sensitive(path) else _READABLE)


_READABLE = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


# Called with the cause of a failed attempt to connect.
OnTrouble = Callable[[str], None]


class EnsembleThreads(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types.
    """Kazoo's threads, with TLS connections by our own contexts.

    Kazoo's own contexts trust all public authorities beside the configured one, and compare no
    host name unless it is demanded.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext] | None, on_trouble: OnTrouble) -> None:
        super().__init__()
        self._tls = tls
        self._on_trouble = on_trouble

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float = 10.0, **_: object
    ) -> socket.socket:
        """Connect to a server; `hostname` is its name in the settings."""
        plain = socket.create_connection(address, timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return plain
        try:
            return self._tls().wrap_socket(plain, server_hostname=hostname)
        except OSError as error:
            plain.close()
            self._on_trouble(f"{hostname}:{address[1]}: {_tls_trouble(error)}")
            raise


def note_granted(
    handler: Any, on_granted: Callable[[int], None], on_trouble: OnTrouble, *, is_tls: bool
) -> None:
    """Note each session timeout that ZooKeeper grants, and its refusals, which kazoo hides.

    `handler` is kazoo's connection handler.
    """
    invoke = handler._invoke

    def noting(timeout: float, request: Any, xid: int | None = None) -> Any:
        try:
            answer = invoke(timeout, request, xid)
        except ConnectionDropped as error:
            if isinstance(request, Connect):
                on_trouble(_closed(str(error), is_tls=is_tls))
            raise
        if isinstance(request, Connect):
            on_granted(answer[0].time_out)
        return answer

    handler._invoke = noting


def _closed(why: str, *, is_tls: bool) -> str:
    """The error for a server that closed the connection at the first request, without a reason."""
    if is_tls:
        return (
            f"the server closed the TLS connection before it answered ({why}): if it demands"
            " certificates (ssl.clientAuth), set zookeeper.ssl.keystore.location to one that its"
            " trust store accepts"
        )
    return (
        f"the server closed the connection before it answered ({why}): if this port is its"
        " secureClientPort, set zookeeper.ssl.client.enable=true"
    )


def _tls_trouble(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the server's certificate is not accepted ({error.verify_message}): put the"
            " certificate of its authority into zookeeper.ssl.truststore.location, and the host"
            " name of coordination.connect into the server's certificate; or renew what has expired"
        )
    reason = getattr(error, "reason", None) or type(error).__name__
    words = str(reason).replace("_", " ").lower()
    if "certificate" in words or "unknown ca" in words or "handshake failure" in words:
        return (
            f"the server does not accept this broker's certificate ({words}): set"
            " zookeeper.ssl.keystore.location to a key and certificate of an authority that is in"
            " the servers' ssl.trustStore.location"
        )
    return (
        f"TLS fails ({words}): zookeeper.ssl.client.enable=true needs the port that the servers'"
        " secureClientPort names, not their clientPort"
    )
