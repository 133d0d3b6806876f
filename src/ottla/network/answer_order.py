"""Keeps the answers of a connection in the order of its requests. Does no I/O.

An answer that is known at once may be sent unless an earlier request still waits. For an answer
that is known only later, `reserve` keeps its place, and all following answers wait for it. A
request without an answer (acks=0) needs no place. If it reserved one, an empty answer frees it.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ottla.wire.parts import Part

# The form in which the connection sends an answer.
Piece = TypeVar("Piece")


class Place(Generic[Piece]):
    """The reserved place of an answer that is not known yet."""

    __slots__ = ("_order", "on_abandoned", "pieces", "request_bytes")

    def __init__(
        self, order: "AnswerOrder[Piece]", request_bytes: int, pieces: list[Piece] | None
    ) -> None:
        self._order = order
        self.request_bytes = request_bytes
        # None until the request is answered.
        self.pieces = pieces
        # Called if the client disconnects before the request is answered.
        self.on_abandoned: Callable[[], None] | None = None

    # Hot: once per request that is answered later.
    def answer(self, parts: list[Part]) -> None:
        """Send `parts` as soon as all earlier answers are sent. No parts mean no answer."""
        assert self.pieces is None, "answered twice"
        # Otherwise a reference cycle with the waiting request would live until garbage collection.
        self.on_abandoned = None
        order = self._order
        if order.is_closed:
            self.pieces = []
            return
        self.pieces = order.hold(parts)
        if order.places[0] is self:
            order.settle()


class AnswerOrder(Generic[Piece]):
    """The unsent answers of one connection.

    `hold` converts an answer to a form in which it can wait. `on_ready` is called when a reserved
    place was answered, so that answers can be sent or more requests can be served.

    Hot: if `places` is empty, the connection itself appends answers to `ready`. It also empties
    `ready` when it sends them.
    """

    __slots__ = (
        "_bytes_max",
        "_on_ready",
        "_requests_max",
        "hold",
        "is_closed",
        "places",
        "ready",
        "unanswered_bytes",
    )

    def __init__(
        self,
        hold: Callable[[list[Part]], list[Piece]],
        on_ready: Callable[[], None],
        *,
        requests_max: int,
        bytes_max: int,
    ) -> None:
        self.hold = hold
        self.is_closed = False
        # Invariant: the first place is not answered. The deque object is never replaced.
        self.places: deque[Place[Piece]] = deque()
        # Answers that may be sent. The connection takes them when it sends them.
        self.ready: list[Piece] = []
        # The total size of the requests in `places`.
        self.unanswered_bytes = 0
        self._on_ready = on_ready
        self._requests_max = requests_max
        self._bytes_max = bytes_max

    @property
    def room(self) -> int:
        """Return how many more requests may be accepted before the earlier ones are answered."""
        return self._requests_max - len(self.places)

    @property
    def is_full(self) -> bool:
        """Return whether the unanswered requests have reached their limit in number or size."""
        return len(self.places) >= self._requests_max or self.unanswered_bytes >= self._bytes_max

    def reserve(self, request_bytes: int) -> Place[Piece]:
        """Reserve a place for the answer to the current request."""
        place: Place[Piece] = Place(self, request_bytes, None)
        self.places.append(place)
        self.unanswered_bytes += request_bytes
        return place

    def add(self, parts: list[Part] | None) -> bool:
        """Add the answer to the current request, or None if it has a place; return `is_full`."""
        if parts:
            if self.places:
                self.places.append(Place(self, 0, self.hold(parts)))
            else:
                self.ready += self.hold(parts)
        return self.is_full

    def settle(self) -> None:
        """After the first place was answered, move the answers that can now be sent to `ready`."""
        places = self.places
        while places and (pieces := places[0].pieces) is not None:
            self.unanswered_bytes -= places.popleft().request_bytes
            self.ready += pieces
        self._on_ready()

    # -- ending

    def close(self) -> None:
        """Drop all answers whose places are still reserved."""
        self.is_closed = True

    def abandon(self) -> list[Piece]:
        """Call `on_abandoned` of unanswered places; return the answers that will not be sent."""
        self.is_closed = True
        # The callback belongs to the owner of this object; the reference cycle would live until
        # garbage collection.
        self._on_ready = _ignore
        unsent, self.ready = self.ready, []
        places = list(self.places)
        self.places.clear()
        self.unanswered_bytes = 0
        for place in places:
            if place.pieces is not None:
                unsent += place.pieces
            elif place.on_abandoned is not None:
                on_abandoned, place.on_abandoned = place.on_abandoned, None
                on_abandoned()
        return unsent


def _ignore() -> None:
    """Do nothing, for a connection that has ended."""
