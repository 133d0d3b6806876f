"""A clock that a test advances: the second implementation of `base.clock.Clock`."""


class ManualClock:
    """A clock that stands still until a test advances it."""

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
