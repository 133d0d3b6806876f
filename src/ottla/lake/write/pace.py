"""Limits the rate of records and bytes. Pure: time is an argument."""

from dataclasses import dataclass

# The most seconds between two looks at the clock.
_LOOKS_PER_S = 20
_ROWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class PublishPace:
    """The limits of a publish; None: no limit."""

    records_per_s: float | None = None
    bytes_per_s: float | None = None

    def delay_s(self, records: int, size_bytes: int, elapsed_s: float) -> float:
        """Return how long to wait after this many records and bytes in this time; 0 for no wait."""
        due_s = 0.0
        if self.records_per_s is not None:
            due_s = records / self.records_per_s
        if self.bytes_per_s is not None:
            due_s = max(due_s, size_bytes / self.bytes_per_s)
        return max(0.0, due_s - elapsed_s)

    @property
    def rows_at_once(self) -> int:
        """Return how many rows may be sent between two looks at the clock."""
        if self.bytes_per_s is not None:
            return 1
        if self.records_per_s is None:
            return _ROWS_MAX
        return max(1, min(_ROWS_MAX, int(self.records_per_s / _LOOKS_PER_S)))
