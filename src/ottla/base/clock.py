"""The clock seam: whoever needs the time is given one of these."""

import time
from contextvars import ContextVar
from typing import Protocol


class Clock(Protocol):
    """Milliseconds, twice: of the day (record timestamps) and since some start (timers)."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC. May jump; never used to measure a delay."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start. Never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


_SYSTEM = SystemClock()
_current: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current_clock() -> Clock:
    """The clock of the world this code runs in: the machine's, unless a simulation gave another."""
    return _current.get() or _SYSTEM


def set_current_clock(clock: Clock) -> None:
    """Let the code of this context, and what it starts, live by `clock`."""
    _current.set(clock)


class ManualClock:
    """A clock that stands still until it is told to advance. For tests and simulation."""

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, delta_ms: int) -> None:
        """Move both clocks forward by `delta_ms` (>= 0)."""
        assert delta_ms >= 0
        self._now_ms += delta_ms
        self._monotonic_ms += delta_ms
