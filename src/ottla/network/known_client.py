"""What is known of the client of a connection: where it is, and who."""

import asyncio
import select
from typing import Any, cast

from ottla.base.addresses import MAPPED, counted_address
from ottla.security.principal import ANONYMOUS, Principal

# Where the system does not know the event, POLLHUP stands for it.
_CLOSED_BY_PEER = getattr(select, "POLLRDHUP", 0)


class KnownClient:
    """The side of a connection that listeners, logins and services fill in and read."""

    _transport: asyncio.Transport
    peer_host: str
    peer_port: int
    local_host: str

    def __init__(self) -> None:
        # What the service knows about the client; only the service reads it.
        self.identity: object | None = None
        # Who the client is, as far as its listener has found out.
        self.principal: Principal = ANONYMOUS
        # The user that it is counted for.
        self.user: str | None = None
        # Whether it has logged in with a delegation token: it may not ask for others then.
        self.by_token = False
        # What the client calls itself (KIP-511), if it has said so.
        self.software = ""

    @property
    def owner(self) -> str:
        """Whose share of what is limited the client takes: its user's, or its address's."""
        if self.principal is ANONYMOUS:
            return counted_address(self.peer_host)
        return str(self.principal)

    def find_addresses(self) -> None:
        """Take the addresses of both ends from the transport."""
        self.peer_host, self.peer_port = _address(self._transport.get_extra_info("peername"))
        self.local_host, _ = _address(self._transport.get_extra_info("sockname"))

    def has_departed(self) -> bool:
        """Whether the client has closed its side; bytes that it sent before may still be unread."""
        socket = self._transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(socket.fileno(), _CLOSED_BY_PEER)
        # Errors and POLLHUP are reported in any case.
        return bool(poll.poll(0))

    def peer_certificate(self) -> bytes | None:
        """The client's certificate in DER, which the TLS of its listener has verified."""
        end = self._transport.get_extra_info("ssl_object")
        return None if end is None else cast("bytes | None", end.getpeercert(True))


def _address(name: tuple[Any, ...] | None) -> tuple[str, int]:
    host, port, *_ = name or ("", 0)
    return host.removeprefix(MAPPED), port
