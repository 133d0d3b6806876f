"""The client of a connection: its address and its identity."""

import asyncio
import select
from typing import Any, cast

from ottla.base.fairness import MAPPED, counted_address
from ottla.security.principal import ANONYMOUS, Principal

# POLLRDHUP, if the system has it; otherwise POLLHUP, which is always reported, must suffice.
_CLOSED_BY_PEER = getattr(select, "POLLRDHUP", 0)


class KnownClient:
    """The client's addresses and identity, which the listener, login and service set and read."""

    _transport: asyncio.Transport
    peer_host: str
    peer_port: int
    local_host: str

    def __init__(self) -> None:
        # The service's data about the client; only the service reads it.
        self.identity: object | None = None
        # The client's principal; ANONYMOUS until the listener knows it.
        self.principal: Principal = ANONYMOUS
        # The user whose connection count includes this connection.
        self.user: str | None = None
        # Whether the client logged in with a delegation token; then it may not request tokens.
        self.by_token = False
        # The client software's name and version (KIP-511), if it sent them.
        self.software = ""
        self.software_version = ""

    @property
    def owner(self) -> str:
        """The name under which this client shares limits with others: its user, or its address."""
        if self.principal is ANONYMOUS:
            return counted_address(self.peer_host)
        return str(self.principal)

    def find_addresses(self) -> None:
        """Take the addresses of both ends from the transport."""
        self.peer_host, self.peer_port = _address(self._transport.get_extra_info("peername"))
        self.local_host, _ = _address(self._transport.get_extra_info("sockname"))

    def has_departed(self) -> bool:
        """Return whether the client has closed its side; some of its bytes may still be unread."""
        socket = self._transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(socket.fileno(), _CLOSED_BY_PEER)
        # Errors and POLLHUP are reported in any case.
        return bool(poll.poll(0))

    def peer_certificate(self) -> bytes | None:
        """Return the client's certificate in DER, already verified in the TLS handshake."""
        end = self._transport.get_extra_info("ssl_object")
        return None if end is None else cast("bytes | None", end.getpeercert(True))


def _address(name: tuple[Any, ...] | None) -> tuple[str, int]:
    host, port, *_ = name or ("", 0)
    return host.removeprefix(MAPPED), port
