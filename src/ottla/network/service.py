"""Between a connection and who answers its requests."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.network.limits import ConnectionLimits, MemoryBudget
from ottla.network.output import Piece, held
from ottla.network.refusals import Refusals
from ottla.wire.parts import Part

if TYPE_CHECKING:
    from ottla.network.connection import Connection


class CloseConnection(Exception):
    """Raised by a service to close the connection at once; the reason goes to the log."""


# Answers the request in a frame (its size prefix cut off) with the parts to send. None or no parts
# where nothing is to be sent now: there is no answer, or `defer` was called for it. Raises
# CloseConnection.
Serve = Callable[[memoryview], "list[Part] | None"]

# Serves several requests that follow one another, each behind its size: how many bytes of them (a
# whole number of requests, at most so many), and the parts to send. None, and nothing is done,
# where the first is to be served by itself.
ServeRun = Callable[[memoryview, int], "tuple[int, list[Part]] | None"]


class Service(Protocol):
    """Who answers the requests of connections."""

    def attach(self, connection: "Connection") -> Serve:
        """Begin to serve a connection."""
        ...


class Hub(Protocol):
    """What connections of one listener share."""

    service: Service
    limits: ConnectionLimits
    budget: MemoryBudget
    refusals: Refusals
    receive_buffer: memoryview
    send_buffer: memoryview

    def on_opened(self, connection: "Connection") -> str | None:
        """Register a connection; a reason where it is one too many."""
        ...

    def on_closed(self, connection: "Connection") -> None: ...


class Slot:
    """The place in line of an answer that comes later."""

    __slots__ = ("_connection", "on_abandoned", "pieces", "request_bytes")

    def __init__(
        self, connection: "Connection", request_bytes: int, pieces: list[Piece] | None
    ) -> None:
        self._connection = connection
        self.request_bytes = request_bytes
        self.pieces = pieces
        # Called when the client goes before it is answered.
        self.on_abandoned: Callable[[], None] | None = None

    def answer(self, parts: list[Part]) -> None:
        """Send `parts` as soon as all earlier answers are sent. No parts: there is no answer."""
        assert self.pieces is None, "answered twice"
        # Whoever waited holds this place: a cycle of both would wait for the garbage collector.
        self.on_abandoned = None
        if self._connection.closed:
            self.pieces = []
            return
        self.pieces = held(parts)
        self._connection.on_slot_answered()
