"""Deadlines of groups and members as data."""

import heapq
from enum import Enum
from typing import NamedTuple


class Due(Enum):
    """The action due at a deadline."""

    JOIN = "join"  # The join phase ends with the members that have joined.
    SYNC = "sync"  # Every member must have asked for its assignment.
    SESSION = "session"  # The member must have sent a heartbeat.
    REVOKE = "revoke"  # The member must have revoked its surplus partitions.


class TimerKey(NamedTuple):
    """Identifies a deadline; `member_id` is empty for a deadline of the whole group."""

    due: Due
    group_id: str
    member_id: str = ""


class Timers:
    """Deadlines by key; setting a key again replaces its deadline.

    If a deadline moves later, its heap entry is corrected only when it reaches the head, so that a
    heartbeat costs one assignment in a dict.
    """

    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, int] = {}
        # Invariant: each key of _deadlines has an entry here that is not later than its deadline.
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._earliest: dict[TimerKey, int] = {}
        self._sequence = 0

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._deadlines

    def set(self, key: TimerKey, deadline_ms: int) -> None:
        """Set the deadline of `key`, in place of any earlier one."""
        self._deadlines[key] = deadline_ms
        queued = self._earliest.get(key)
        if queued is None or deadline_ms < queued:
            self._push(key, deadline_ms)

    def cancel(self, key: TimerKey) -> None:
        """Forget `key`; nothing happens if it is not set."""
        self._deadlines.pop(key, None)

    def next_deadline_ms(self) -> int | None:
        """When the earliest deadline comes up, or None if there is none."""
        self._settle_head()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Take the earliest key whose deadline is at or before `now_ms`, if any."""
        self._settle_head()
        if not self._heap or self._heap[0][0] > now_ms:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._earliest[key]
        del self._deadlines[key]
        return key

    def _push(self, key: TimerKey, deadline_ms: int) -> None:
        self._sequence += 1
        self._earliest[key] = deadline_ms
        heapq.heappush(self._heap, (deadline_ms, self._sequence, key))

    def _settle_head(self) -> None:
        """Drop or move entries at the head of the heap until its first deadline is right."""
        heap = self._heap
        while heap:
            queued_ms, _, key = heap[0]
            deadline_ms = self._deadlines.get(key)
            if queued_ms != self._earliest.get(key):
                heapq.heappop(heap)  # An earlier entry has replaced it.
            elif deadline_ms is None:
                heapq.heappop(heap)
                del self._earliest[key]
            elif deadline_ms > queued_ms:
                heapq.heappop(heap)
                self._push(key, deadline_ms)
            else:
                return
