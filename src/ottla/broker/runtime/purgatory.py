"""Deadlines of waiting requests, in one heap, with one timer of the loop for the earliest."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from ottla.base.clock import Clock

# Cancelled deadlines stay in the heap until they are due. If they are more than this and more than
# half, they are removed.
_CANCELLED_MIN = 1024


class Deadline:
    """Calls `callback` at `at_ms` (monotonic) unless it is cancelled first."""

    __slots__ = ("at_ms", "callback")

    def __init__(self, at_ms: int, callback: Callable[[], None] | None) -> None:
        self.at_ms = at_ms
        # None after the deadline was cancelled or has passed.
        self.callback = callback


class Purgatory:
    """All deadlines of a broker."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._monotonic_ms = clock.monotonic_ms
        self._loop = loop
        self._heap: list[tuple[int, int, Deadline]] = []
        self._sequence = count()
        self._cancelled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0

    def __len__(self) -> int:
        """Return the number of pending deadlines."""
        return len(self._heap) - self._cancelled

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Deadline:
        """Call `callback` after `delay_ms`, but not before the next turn of the loop."""
        deadline = Deadline(self._monotonic_ms() + max(delay_ms, 0), callback)
        heapq.heappush(self._heap, (deadline.at_ms, next(self._sequence), deadline))
        if self._timer is None or deadline.at_ms < self._timer_at_ms:
            self._arm()
        return deadline

    def cancel(self, deadline: Deadline) -> None:
        """Cancel a deadline; if it has already passed, nothing happens."""
        if deadline.callback is None:
            return
        deadline.callback = None
        self._cancelled += 1
        if self._cancelled > _CANCELLED_MIN and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def close(self) -> None:
        """Cancel all deadlines, for good."""
        if self._timer is not None:
            self._timer.cancel()
        self._heap.clear()
        self._cancelled = 0

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer_at_ms = self._heap[0][0]
            delay_ms = max(0, self._timer_at_ms - self._monotonic_ms())
            self._timer = self._loop.call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._monotonic_ms()
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            deadline = heapq.heappop(heap)[2]
            callback = deadline.callback
            if callback is None:
                self._cancelled -= 1
                continue
            deadline.callback = None
            callback()
            heap = self._heap  # The callback may have cancelled deadlines and so rebuilt the heap.
        self._arm()
