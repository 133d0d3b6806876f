"""What is kept of clients that have not logged in, over all connections. Does no I/O."""

from typing import Final, Protocol

BYTES_MAX: Final = 16 << 20
# Once there is too much, so much may stay: the next is not too much again.
_STAYS: Final = 3 / 4


class Keeper(Protocol):
    """A connection whose client has not logged in."""

    @property
    def kept_bytes(self) -> int:
        """What is kept of its requests now."""
        ...

    def on_too_much(self) -> None:
        """All of them together keep too much: end."""
        ...


class BytesBeforeLogin:
    """The bytes of requests that wait for their rest, or for the answer before them.

    Clients that log in send requests whole, and are served at once. So where there is too much,
    those end that have kept something for the longest time.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        # By the time when each began to keep something; what is noted may have been served since.
        self._kept: dict[Keeper, int] = {}
        # Invariant: the sum of `_kept`.
        self.noted_bytes = 0

    def note(self, keeper: Keeper) -> None:
        """A connection keeps what came of a request."""
        self._note(keeper)
        if self.noted_bytes > self._bytes_max:
            self._make_room()

    def forget(self, keeper: Keeper) -> None:
        """Its client has logged in, or has left."""
        self.noted_bytes -= self._kept.pop(keeper, 0)

    def _note(self, keeper: Keeper) -> None:
        kept = keeper.kept_bytes
        if kept:
            self.noted_bytes += kept - self._kept.get(keeper, 0)
            self._kept[keeper] = kept
        else:
            self.forget(keeper)

    def _make_room(self) -> None:
        keepers = list(self._kept)
        for keeper in keepers:
            self._note(keeper)
        if self.noted_bytes <= self._bytes_max:
            return
        for keeper in keepers:
            if self.noted_bytes <= self._bytes_max * _STAYS:
                return
            if keeper in self._kept:
                self.forget(keeper)
                keeper.on_too_much()
