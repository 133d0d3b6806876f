"""A machine's clocks: both follow the virtual loop, the time of day with an error of its own."""

from ottla.testing.simulation.loop import VirtualLoop

# 2026-01-01 00:00 UTC: when every simulated world begins.
BEGINNING_MS = 1_767_225_600_000


class MachineClock:
    """Implements `Clock`. `skew_ms` may be changed at any time: a jump of the time of day."""

    def __init__(self, loop: VirtualLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return BEGINNING_MS + self.skew_ms + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)
