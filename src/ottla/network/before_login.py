"""Limits the memory held for clients that have not logged in, over all connections. Does no I/O."""

from typing import Final, Protocol

BYTES_MAX: Final = 16 << 20
# The part of the limit down to which connections are closed, so that the next request does not
# exceed it at once.
_STAYS: Final = 3 / 4


class Keeper(Protocol):
    """A connection whose client has not logged in."""

    @property
    def kept_bytes(self) -> int:
        """Return the bytes of its requests held now."""
        ...

    def on_too_much(self) -> None:
        """Close the connection: all such clients together exceed the limit."""
        ...


class BytesBeforeLogin:
    """The bytes of incomplete or waiting requests of clients that have not logged in.

    Clients that log in send whole requests, which are served at once. So at the limit, the
    connections that have held bytes for the longest time are closed.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        # In the order in which each began to hold bytes; some of the counted bytes may have been
        # served since.
        self._kept: dict[Keeper, int] = {}
        # Invariant: the sum of `_kept`.
        self.noted_bytes = 0

    def note(self, keeper: Keeper) -> None:
        """Note how many bytes of a request a connection holds."""
        self._note(keeper)
        if self.noted_bytes > self._bytes_max:
            self._make_room()

    def forget(self, keeper: Keeper) -> None:
        """Remove a connection whose client has logged in or left."""
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
