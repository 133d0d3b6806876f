"""The mute time of a connection: a single timer, which a longer mute time replaces."""

import asyncio
from collections.abc import Callable


class MuteTimer:
    """The time until which a connection is muted or delayed."""

    __slots__ = ("_loop", "_on_end", "_until_s", "timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        """Create the timer; `on_end` is called when the time is over."""
        self._loop = loop
        self._on_end: Callable[[], None] | None = on_end
        # By the loop's clock.
        self._until_s = 0.0
        self.timer: asyncio.TimerHandle | None = None

    def lengthen(self, delay_ms: int) -> bool:
        """Extend the time to `delay_ms` from now; return False if it already lasts longer."""
        until_s = self._loop.time() + delay_ms / 1000
        if until_s <= self._until_s:
            return False
        if self.timer is not None:
            self.timer.cancel()
        self._until_s = until_s
        self.timer = self._loop.call_later(delay_ms / 1000, self._end)
        return True

    def close(self) -> None:
        """Drop the references between this object and the connection, which has ended."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self._on_end = None

    def _end(self) -> None:
        self.timer = None
        self._until_s = 0.0
        if self._on_end is not None:
            self._on_end()
