"""The clocks, which a simulation can replace: a part that needs the time receives a `Clock`."""

import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Milliseconds of two clocks: wall clock (record timestamps) and monotonic (timers)."""

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
    """Return the clock of this context: the machine's, unless a simulation has set another."""
    return _current.get() or _SYSTEM


def local_now() -> datetime:
    """The time of the current clock, in the zone of this machine."""
    return datetime.fromtimestamp(current_clock().now_ms() / 1000, UTC).astimezone()


def set_current_clock(clock: Clock) -> None:
    """Use `clock` in this context, and in tasks that it starts."""
    _current.set(clock)
