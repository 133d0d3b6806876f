"""The limits on memory for requests that are being received, before and after login."""

import mmap
from typing import Final, Protocol

from ottla.base.fairness import fair_share
from ottla.base.system import anonymous_memory

BYTES_MAX: Final = 16 << 20
# Connections are closed until only this part of the limit is in use, so that the next request
# does not exceed the limit again at once.
_STAYS: Final = 3 / 4


class Keeper(Protocol):
    """A connection whose client has not logged in."""

    @property
    def kept_bytes(self) -> int:
        """Return how many bytes of requests the connection holds now."""
        ...

    def on_too_much(self) -> None:
        """Close the connection, because all clients without a login exceed the limit together."""
        ...


class BytesBeforeLogin:
    """The bytes of incomplete or waiting requests of clients that have not logged in.

    A client that logs in sends whole requests, which are served at once. So when the limit is
    reached, the connections that have held bytes for the longest time are closed.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        # In the order in which the connections began to hold bytes. The number may be out of date:
        # some of the bytes may have been served since.
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


# Up to this many bytes of free buffers are kept for later large requests. Buffer sizes are
# multiples of the grain.
_SPARE_BYTES_MAX: Final = 4 << 20
_GRAIN_BYTES: Final = 64 << 10
# While requests wait, a tenth of each request in memory must arrive between two checks.
_PORTIONS: Final = 10


class Holder(Protocol):
    """A connection that is receiving a large request. It receives only one at a time."""

    @property
    def owner(self) -> str:
        """Return the user, or the client's address if the user is unknown."""
        ...

    @property
    def large_received(self) -> int:
        """Return how many bytes of the large request were received."""
        ...

    def on_memory(self) -> None:
        """Continue, because the memory that this holder waited for has been taken for it."""
        ...

    def on_slow(self) -> None:
        """Close if the client is at fault: its request arrives too slowly while others wait."""
        ...


class MemoryBudget:
    """The memory budget for requests being received, over all connections.

    A client announces the size of a request first, and may then send nothing. Therefore one owner
    cannot take the whole budget, and while others wait, the connections in `slow_holders` are
    closed. Waiting owners take turns. A request larger than the whole budget could never fit, so it
    is admitted when no other request holds memory.
    """

    def __init__(self, limit_bytes: int) -> None:
        # Separate from the budget, because large requests come after the login.
        self.before_login = BytesBeforeLogin()
        self._limit_bytes = limit_bytes
        # An owner that has a request in memory gets more only while all its requests fit in this.
        self._share_bytes = fair_share(limit_bytes)
        # Invariant: `held_bytes` is the sum of `_held`, and also the sum of `_owned`.
        self.held_bytes = 0
        self._held: dict[Holder, tuple[str, int]] = {}
        self._owned: dict[str, int] = {}
        # By owner, in the order of their turns.
        self._waiting: dict[str, dict[Holder, int]] = {}
        # The bytes that each holder had received at the last check; None if no check is running.
        self._seen: dict[Holder, int] | None = None
        # Free buffers for later large requests: mapping new pages costs more than filling them.
        self._spare: list[mmap.mmap] = []
        self._spare_bytes = 0

    def take(self, holder: Holder, size: int) -> bool:
        """Take `size` bytes now and return True; or return False, and call `on_memory` later."""
        owner = holder.owner
        is_free = self._has_share(owner, size) and self._fits(size)
        if is_free and not (self._waiting and self._must_wait(owner)):
            self._hold(holder, owner, size)
            return True
        self._waiting.setdefault(owner, {})[holder] = size
        return False

    def give(self, holder: Holder) -> None:
        """Return a holder's memory to the budget, and admit waiting requests that fit."""
        owner, size = self._held.pop(holder)
        self.held_bytes -= size
        self._owned[owner] -= size
        if not self._owned[owner]:
            del self._owned[owner]
        if self._seen is not None:
            self._seen.pop(holder, None)
        self._go_on()

    def leave(self, holder: Holder) -> None:
        """Remove a holder from the requests that wait for memory, if it waits."""
        for owner, line in self._waiting.items():
            if line.pop(holder, None) is not None:
                if not line:
                    del self._waiting[owner]
                self._go_on()
                return

    # -- buffers

    def buffer(self, size: int) -> memoryview:
        """Return a buffer for `size` taken bytes. It may contain bytes of earlier requests."""
        for number, spare in enumerate(self._spare):
            if len(spare) >= size:
                del self._spare[number]
                self._spare_bytes -= len(spare)
                return memoryview(spare)[:size]
        whole = -(-size // _GRAIN_BYTES) * _GRAIN_BYTES
        return memoryview(anonymous_memory(whole))[:size]

    def give_buffer(self, holder: Holder, buffer: memoryview) -> None:
        """Return a buffer that is no longer in use, together with the bytes taken for it."""
        spare = buffer.obj
        assert isinstance(spare, mmap.mmap)
        if self._spare_bytes + len(spare) <= _SPARE_BYTES_MAX:
            self._spare.append(spare)
            self._spare_bytes += len(spare)
        self.give(holder)

    # -- clients that announce large requests and send slowly

    @property
    def is_short(self) -> bool:
        """Return whether requests wait for memory."""
        return bool(self._waiting)

    def look(self) -> bool:
        """Begin a check: note how many bytes each holder has received, for `slow_holders`.

        Return False if a check is running already.
        """
        if self._seen is not None:
            return False
        self._seen = {holder: holder.large_received for holder in self._held}
        return True

    def slow_holders(self) -> list[Holder]:
        """Return the holders that have received less than a tenth of their request since `look`.

        A request received in full is not slow, even if it waits to be served.
        """
        seen, self._seen = self._seen or {}, None
        if not self._waiting:
            return []
        return [
            holder
            for holder, before in seen.items()
            if holder.large_received < self._due(holder, before)
        ]

    def _due(self, holder: Holder, before: int) -> float:
        _, size = self._held[holder]
        return min(before + size / _PORTIONS, size)

    # -- turns

    def _must_wait(self, owner: str) -> bool:
        """Return whether the owner has a waiting request, or another's waits only for room."""
        return owner in self._waiting or any(self._may_be_next(each) for each in self._waiting)

    def _go_on(self) -> None:
        while self._waiting and (owner := self._next_owner()):
            self._let_in(owner)

    def _next_owner(self) -> str:
        """Return the owner whose request comes next; "" if that request does not fit yet."""
        for owner in self._waiting:
            if self._may_be_next(owner):
                return owner if self._fits(next(iter(self._waiting[owner].values()))) else ""
        return ""

    def _may_be_next(self, owner: str) -> bool:
        return self._has_share(owner, next(iter(self._waiting[owner].values())))

    def _let_in(self, owner: str) -> None:
        line = self._waiting.pop(owner)
        holder = next(iter(line))
        size = line.pop(holder)
        if line:
            self._waiting[owner] = line
        self._hold(holder, owner, size)
        holder.on_memory()

    def _hold(self, holder: Holder, owner: str, size: int) -> None:
        self._held[holder] = (owner, size)
        self._owned[owner] = self._owned.get(owner, 0) + size
        self.held_bytes += size

    def _has_share(self, owner: str, size: int) -> bool:
        owned = self._owned.get(owner, 0)
        return not owned or owned + size <= self._share_bytes

    def _fits(self, size: int) -> bool:
        return not self.held_bytes or self.held_bytes + size <= self._limit_bytes
