"""Limits of one connection, and the budget of memory that all connections share."""

import mmap
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.system import anonymous_memory


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


# Buffers of so many bytes in all are kept for the next large requests; the size of each is a
# multiple of the grain.
_SPARE_BYTES_MAX = 4 << 20
_GRAIN_BYTES = 64 << 10
# What one owner may take: a client that announces large requests and does not send them would
# make those of all others wait.
_PARTS_OF_AN_OWNER = 4


class MemoryBudget:
    """Bytes that requests under assembly may take, over all connections (`queued.max.bytes`).

    An owner, a user or an address, gets at most a quarter of them. A request larger than that is
    let in when its owner holds nothing, and one larger than the whole budget when nothing is held:
    else it could never be served.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._held_by: dict[str, int] = {}
        self._waiting: deque[tuple[int, str, Callable[[], None]]] = deque()
        # Buffers given back, for the next large requests: fresh pages cost more than to fill them.
        self._spare: list[mmap.mmap] = []
        self._spare_bytes = 0

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    def take(self, size: int, owner: str, on_taken: Callable[[], None]) -> bool:
        """Take `size` bytes at once, or call `on_taken` when they have been taken later."""
        if self._has_share(size, owner) and not self._is_full(size):
            self._hold(size, owner)
            return True
        self._waiting.append((size, owner, on_taken))
        return False

    def buffer(self, size: int) -> memoryview:
        """A buffer for `size` bytes that were taken. It holds bytes of earlier requests."""
        for number, spare in enumerate(self._spare):
            if len(spare) >= size:
                del self._spare[number]
                self._spare_bytes -= len(spare)
                return memoryview(spare)[:size]
        whole = -(-size // _GRAIN_BYTES) * _GRAIN_BYTES
        return memoryview(anonymous_memory(whole))[:size]

    def give_buffer(self, buffer: memoryview, owner: str) -> None:
        """Give back a buffer that is not read any more, and its bytes."""
        spare = buffer.obj
        assert isinstance(spare, mmap.mmap)
        if self._spare_bytes + len(spare) <= _SPARE_BYTES_MAX:
            self._spare.append(spare)
            self._spare_bytes += len(spare)
        self.give(len(buffer), owner)

    def give(self, size: int, owner: str) -> None:
        """Give back `size` bytes; requests that waited for them get them, in order."""
        self._held_bytes -= size
        left = self._held_by[owner] - size
        assert self._held_bytes >= 0 <= left
        if left:
            self._held_by[owner] = left
        else:
            del self._held_by[owner]
        while (on_taken := self._next()) is not None:
            on_taken()

    def _next(self) -> Callable[[], None] | None:
        """Take for the first that waits whose owner has its share, if there is room for it."""
        for number, (size, owner, on_taken) in enumerate(self._waiting):
            if self._has_share(size, owner):
                if not self._fits(size):
                    return None
                del self._waiting[number]
                self._hold(size, owner)
                return on_taken
        return None

    def _hold(self, size: int, owner: str) -> None:
        self._held_bytes += size
        self._held_by[owner] = self._held_by.get(owner, 0) + size

    def _is_full(self, size: int) -> bool:
        """Whether there is no room, or one that waits for room comes first."""
        return not self._fits(size) or any(
            self._has_share(each, owner) for each, owner, _ in self._waiting
        )

    def _has_share(self, size: int, owner: str) -> bool:
        held = self._held_by.get(owner, 0)
        return not held or held + size <= self._limit_bytes // _PARTS_OF_AN_OWNER

    def _fits(self, size: int) -> bool:
        return self._held_bytes == 0 or self._held_bytes + size <= self._limit_bytes
