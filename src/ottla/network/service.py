"""The interface between a connection and the service that answers its requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ottla.network.answer_order import Place
from ottla.network.memory_budget import MemoryBudget
from ottla.network.output import Piece
from ottla.network.refusals import Refusals
from ottla.wire.parts import Part


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one listener's connections. Sizes in bytes, times in milliseconds."""

    # `socket.request.max.bytes`
    request_bytes_max: int = 100 << 20
    # A connection with this many unanswered requests is not read.
    unanswered_requests_max: int = 256
    unanswered_bytes_max: int = 64 << 20
    # `connections.max.idle.ms`; negative means never.
    idle_ms_max: int = 600_000
    # `socket.send.buffer.bytes`, `socket.receive.buffer.bytes`; -1 leaves them to the system.
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    # `socket.listen.backlog.size`
    backlog: int = 50


if TYPE_CHECKING:
    from ottla.network.connection import Connection


class CloseConnection(Exception):
    """Raised by a service to close the connection at once; the reason is logged.

    All reasons of one `kind` share one log line per address (see `network.refusals`), so `kind`
    must not contain text chosen by the client.
    """

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


# Serves the request in a frame (without its size prefix) and returns the parts of the answer to
# send. Returns None or no parts if there is no answer, or if `defer` was called because the answer
# comes later. Raises CloseConnection.
Serve = Callable[[memoryview], "list[Part] | None"]

# Serves several consecutive requests, each preceded by its size. The second argument is the most to
# serve. Returns the number of bytes of the served requests, size prefixes included, and the parts
# to send. Returns None, and does nothing, if the first request must be served by itself.
ServeRun = Callable[[memoryview, int], "tuple[int, list[Part]] | None"]


# The reserved place of an answer that comes later.
Slot = Place[Piece]


class Service(Protocol):
    """Answers the requests of connections."""

    def attach(self, connection: "Connection") -> Serve:
        """Begin to serve a connection; return the function that serves its requests."""
        ...


class Hub(Protocol):
    """The objects that the connections of one listener share."""

    service: Service
    limits: ConnectionLimits
    budget: MemoryBudget
    refusals: Refusals
    receive_buffer: memoryview
    send_buffer: memoryview

    def on_opened(self, connection: "Connection") -> str | None:
        """Count a new connection. Returns the reason if it must be closed at once."""
        ...

    def on_known(self, connection: "Connection") -> str | None:
        """Count the user of a connection. Returns the reason if it must be closed."""
        ...

    def failed(self, host: str) -> None:
        """Note that a client of this address failed to log in."""
        ...

    def on_closed(self, connection: "Connection") -> None:
        """Subtract a connection from the counts."""
        ...
