"""Whether the client of a connection has gone, also while nothing is read from it."""

import asyncio
import select

# Where the system does not know the event, POLLHUP stands for it.
_CLOSED_BY_PEER = getattr(select, "POLLRDHUP", 0)


def has_departed(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer has closed its side; bytes that it sent before may still be unread."""
    socket = transport.get_extra_info("socket")
    if socket is None or socket.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(socket.fileno(), _CLOSED_BY_PEER)
    # Errors and POLLHUP are reported in any case.
    return bool(poll.poll(0))
