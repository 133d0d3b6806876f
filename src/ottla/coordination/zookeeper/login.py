"""Prepares a connection to ZooKeeper before its first request: TLS and SASL.

Runs on kazoo's threads. A failure is reported with cause and remedy; kazoo then tries again.
"""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import SASL, Connect
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from ottla.base.chance import random_bytes
from ottla.coordination.interface.client import StoreAccess
from ottla.coordination.zookeeper.digest_md5 import DigestMd5, DigestRefused


@dataclass(frozen=True, slots=True)
class ZookeeperSecurity:
    """The access of one client, in kazoo's terms."""

    access: StoreAccess = field(default_factory=StoreAccess)

    @property
    def user(self) -> str:
        return self.access.user

    @property
    def is_sasl(self) -> bool:
        return bool(self.access.user and self.access.mechanism)

    @property
    def auth_data(self) -> list[tuple[str, str]] | None:
        """The credentials that kazoo sends after each connect, for ZooKeeper's scheme `digest`."""
        if not self.access.user or self.is_sasl:
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


_NONCE_BYTES = 18
# Called with the cause of a failed login, and whether another attempt may succeed.
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


class EnsembleLogin:
    """SASL logins, and their failures, of the connections of one client."""

    def __init__(
        self,
        security: ZookeeperSecurity,
        handler: Any,
        *,
        on_granted: Callable[[int], None],
        on_done: Callable[[], None],
        on_refused: OnTrouble,
        on_trouble: OnTrouble,
    ) -> None:
        """`handler` is kazoo's connection handler; `on_done` is called after the login."""
        self._security = security
        self._handler = handler
        self._invoke = handler._invoke
        self._on_granted = on_granted
        self._on_done = on_done
        self._on_refused = on_refused
        self._on_trouble = on_trouble
        handler._invoke = self._noting
        if security.is_sasl:
            handler.sasl_options = {}
            handler._authenticate_with_sasl = self._log_in

    def _noting(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        """Note the timeout that ZooKeeper grants, and its refusals, which kazoo does not report."""
        try:
            answer = self._invoke(timeout, request, xid)
        except ConnectionDropped as error:
            if isinstance(request, Connect):
                self._on_trouble(_closed(str(error), is_tls=self._security.tls is not None))
            raise
        if isinstance(request, Connect):
            self._on_granted(answer[0].time_out)
        return answer

    def _log_in(self, _host: str, timeout: float) -> None:
        """Log in by DIGEST-MD5, in place of kazoo's own login."""
        access = self._security.access
        login = DigestMd5(access.user, access.password, random_bytes(_NONCE_BYTES).hex())
        try:
            challenge = self._exchange(b"", timeout, 1)
            last = self._exchange(login.answer(challenge), timeout, 2)
        except (AuthFailedError, DigestRefused) as error:
            raise self._refused(str(error)) from error
        except ConnectionDropped as error:
            # The server died: one that refuses a login reports it.
            self._on_trouble(f"the connection ended during the login ({error})")
            raise
        if not login.is_proven(last):
            raise self._refused("the server did not prove that it knows the password")
        self._on_done()

    def _exchange(self, token: bytes, timeout: float, xid: int) -> bytes:
        self._handler._submit(SASL(token), timeout, xid)
        header, buffer, offset = self._handler._read_header(timeout)
        if header.xid != xid or header.err:
            raise AuthFailedError(f"error {header.err}" if header.err else "out of order")
        answer, _ = SASL.deserialize(buffer, offset)
        return bytes(answer or b"")

    def _refused(self, why: str) -> Exception:
        self._on_refused(
            f"refused the login of user {self._security.user!r} by DIGEST-MD5 ({why or 'no reason'}"
            "): coordination.user and coordination.password are to be those of a line"
            ' user_NAME="PASSWORD" in the section Server of the ZooKeeper servers\' JAAS file'
        )
        # Kazoo would give up forever, but a password may be corrected while the broker runs.
        dropped: Exception = ConnectionDropped("the login was refused")
        return dropped


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
