"""The memory of large requests under assembly, shared by all connections. Does no I/O."""

import mmap
from typing import Final, Protocol

from ottla.base.fair_share import fair_share
from ottla.base.system import anonymous_memory
from ottla.network.before_login import BytesBeforeLogin

# Buffers of so many bytes in all are kept for the next large requests; the size of each is a
# multiple of the grain.
_SPARE_BYTES_MAX: Final = 4 << 20
_GRAIN_BYTES: Final = 64 << 10
# While others wait, this part of each request must come between two looks.
_PORTIONS: Final = 10


class Holder(Protocol):
    """A connection that receives a large request, one at a time."""

    @property
    def owner(self) -> str:
        """Its user; its address where the user is not known."""
        ...

    @property
    def large_received(self) -> int:
        """How much of the large request has come."""
        ...

    def on_memory(self) -> None:
        """The bytes that it waited for have been taken for it."""
        ...

    def on_slow(self) -> None:
        """Others wait, and too little of the large request comes: end, where it is the client."""
        ...


class MemoryBudget:
    """Bytes that requests under assembly may take, over all connections.

    Clients announce how large a request is, and may stop there. So one owner cannot take all, and
    while others wait, `slow_holders` are to end. Owners that wait take turns. A request
    larger than the whole budget is let in when nothing else is held, else it could never be served.
    """

    def __init__(self, limit_bytes: int) -> None:
        # Beside the budget, since large requests come after the login.
        self.before_login = BytesBeforeLogin()
        self._limit_bytes = limit_bytes
        # An owner with a request under assembly gets more while all of its requests have no more.
        self._share_bytes = fair_share(limit_bytes)
        # Invariant: `held_bytes` is the sum of `_held`, and of `_owned`.
        self.held_bytes = 0
        self._held: dict[Holder, tuple[str, int]] = {}
        self._owned: dict[str, int] = {}
        # By owner; the owner whose turn is next comes first.
        self._waiting: dict[str, dict[Holder, int]] = {}
        # What holders had received at the last look; None while nothing is looked at.
        self._seen: dict[Holder, int] | None = None
        # Buffers given back, for the next large requests: fresh pages cost more than to fill them.
        self._spare: list[mmap.mmap] = []
        self._spare_bytes = 0

    def take(self, holder: Holder, size: int) -> bool:
        """Take `size` bytes now; False: `on_memory` is called when they have been taken."""
        owner = holder.owner
        is_free = self._has_share(owner, size) and self._fits(size)
        if is_free and not (self._waiting and self._must_wait(owner)):
            self._hold(holder, owner, size)
            return True
        self._waiting.setdefault(owner, {})[holder] = size
        return False

    def give(self, holder: Holder) -> None:
        """Give back what a holder has taken; those that wait get their turn."""
        owner, size = self._held.pop(holder)
        self.held_bytes -= size
        self._owned[owner] -= size
        if not self._owned[owner]:
            del self._owned[owner]
        if self._seen is not None:
            self._seen.pop(holder, None)
        self._go_on()

    def leave(self, holder: Holder) -> None:
        """Wait no more, if the holder does."""
        for owner, line in self._waiting.items():
            if line.pop(holder, None) is not None:
                if not line:
                    del self._waiting[owner]
                self._go_on()
                return

    # -- buffers

    def buffer(self, size: int) -> memoryview:
        """A buffer for `size` bytes that were taken. It holds bytes of earlier requests."""
        for number, spare in enumerate(self._spare):
            if len(spare) >= size:
                del self._spare[number]
                self._spare_bytes -= len(spare)
                return memoryview(spare)[:size]
        whole = -(-size // _GRAIN_BYTES) * _GRAIN_BYTES
        return memoryview(anonymous_memory(whole))[:size]

    def give_buffer(self, holder: Holder, buffer: memoryview) -> None:
        """Give back a buffer that is not read any more, and its bytes."""
        spare = buffer.obj
        assert isinstance(spare, mmap.mmap)
        if self._spare_bytes + len(spare) <= _SPARE_BYTES_MAX:
            self._spare.append(spare)
            self._spare_bytes += len(spare)
        self.give(holder)

    # -- clients that announce much and send little

    @property
    def is_short(self) -> bool:
        """Whether requests wait for others to give memory back."""
        return bool(self._waiting)

    def look(self) -> bool:
        """Note what all holders have received, for `slow_holders`. False: it is noted already."""
        if self._seen is not None:
            return False
        self._seen = {holder: holder.large_received for holder in self._held}
        return True

    def slow_holders(self) -> list[Holder]:
        """While others wait: those that received less than a tenth of their request since `look`.

        What has come as a whole is not slow, though it may wait to be served.
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

    # -- whose turn it is

    def _must_wait(self, owner: str) -> bool:
        """Whether others come first: the owner's own requests, or one that only lacks room."""
        return owner in self._waiting or any(self._may_be_next(each) for each in self._waiting)

    def _go_on(self) -> None:
        while self._waiting and (owner := self._next_owner()):
            self._let_in(owner)

    def _next_owner(self) -> str:
        """The owner whose request fits in; none where the next one must wait for room."""
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
