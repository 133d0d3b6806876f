"""What a connection and the service that answers its requests see of each other."""

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
    """Bounds of one listener's connections. Sizes in bytes, times in milliseconds."""

    # `socket.request.max.bytes`
    request_bytes_max: int = 100 << 20
    # Requests that one connection may have without an answer before it is no longer read.
    unanswered_requests_max: int = 256
    unanswered_bytes_max: int = 64 << 20
    # `connections.max.idle.ms`; negative: never.
    idle_ms_max: int = 600_000
    # `socket.send.buffer.bytes`, `socket.receive.buffer.bytes`; -1 leaves them to the system.
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    # `socket.listen.backlog.size`
    backlog: int = 50


if TYPE_CHECKING:
    from ottla.network.connection import Connection


class CloseConnection(Exception):
    """Raised by a service to close the connection at once; the reason goes to the log.

    Reasons of one `kind` are one line there for each address (see `network.refusals`): it must
    not contain what the client chooses.
    """

    def __init__(self, reason: str, kind: str) -> None:
        super().__init__(reason)
        self.kind = kind


# Answers the request in a frame (its size prefix cut off) with the parts to send. None or no parts
# where nothing is to be sent now: there is no answer, or `defer` was called for it. Raises
# CloseConnection.
Serve = Callable[[memoryview], "list[Part] | None"]

# Serves several requests that follow one another, each behind its size, at most as many as the
# second argument: returns the bytes of the requests that were served, sizes included, and the parts
# to send. None, and nothing is done, where the first request is to be served by itself.
ServeRun = Callable[[memoryview, int], "tuple[int, list[Part]] | None"]


# The place in line of an answer that comes later.
Slot = Place[Piece]


class Service(Protocol):
    """Answers the requests of connections."""

    def attach(self, connection: "Connection") -> Serve:
        """Begin to serve a connection."""
        ...


class Hub(Protocol):
    """What the connections of one listener share."""

    service: Service
    limits: ConnectionLimits
    budget: MemoryBudget
    refusals: Refusals
    receive_buffer: memoryview
    send_buffer: memoryview

    def on_opened(self, connection: "Connection") -> str | None:
        """Count a connection in. Returns the reason if it is to be closed at once."""
        ...

    def on_known(self, connection: "Connection") -> str | None:
        """Count the user of a connection. Returns the reason if it is to be closed."""
        ...

    def failed(self, host: str) -> None:
        """A client of this address did not log in."""
        ...

    def on_closed(self, connection: "Connection") -> None:
        """Count a connection out."""
        ...
