"""The window of a share partition: runs of offsets without gaps, each in one delivery state."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ottla.share.states import DeliveryState


@dataclass(slots=True)
class StateRun:
    """Offsets `first` to `last`, both included, in the same state.

    `deliveries` is how often they were acquired, `batch_size` how many records were acquired
    together the first time. `member_id` and `deadline_ms` (monotonic, when the lock expires) are
    set while they are acquired.
    """

    first: int
    last: int
    state: DeliveryState
    deliveries: int
    member_id: str | None = None
    deadline_ms: int = 0
    batch_size: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def is_like(self, other: "StateRun") -> bool:
        """Whether the two can be joined if they are neighbours."""
        return (
            self.state is other.state
            and self.deliveries == other.deliveries
            and self.member_id == other.member_id
            and self.deadline_ms == other.deadline_ms
            and (self.batch_size == other.batch_size or self.state.is_final)
        )


class Window:
    """Runs in order, from `start` up to but not including `end`.

    Invariant: the first run begins at `start`, each other run begins right after the previous one,
    and the last run ends at `end - 1`.
    """

    __slots__ = ("_runs", "end", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self._runs: list[StateRun] = []

    def __iter__(self) -> Iterator[StateRun]:
        """All runs. The caller may change their states while it iterates, but not call `cut`."""
        return iter(self._runs)

    def extend(self, last: int) -> None:
        """Add offsets up to `last`, which were never delivered."""
        if last >= self.end:
            self._runs.append(StateRun(self.end, last, DeliveryState.AVAILABLE, 0))
            self.end = last + 1

    def cut(self, first: int, last: int) -> list[StateRun]:
        """The runs of exactly these offsets, clipped to the window; splits runs at the borders."""
        first, last = max(first, self.start), min(last, self.end - 1)
        if first > last:
            return []
        self._split(first)
        self._split(last + 1)
        return self._runs[self._index(first) : self._index(last) + 1]

    def peek(self, first: int, last: int) -> list[StateRun]:
        """The runs that contain any of these offsets, not split."""
        first, last = max(first, self.start), min(last, self.end - 1)
        if first > last:
            return []
        return self._runs[self._index(first) : self._index(last) + 1]

    def join(self) -> None:
        """Join neighbouring runs in the same state."""
        joined: list[StateRun] = []
        for run in self._runs:
            if joined and joined[-1].is_like(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self._runs = joined

    def drop_before(self, offset: int) -> None:
        """Drop all offsets below `offset`."""
        if offset <= self.start:
            return
        if offset >= self.end:
            self._runs.clear()
            self.end = offset
        else:
            self._split(offset)
            del self._runs[: self._index(offset)]
        self.start = offset

    def drop_final(self) -> None:
        """Drop the runs in a final state at the beginning."""
        count = 0
        for run in self._runs:
            if not run.state.is_final:
                break
            count += 1
        if count:
            self.start = self._runs[count - 1].last + 1
            del self._runs[:count]

    def _index(self, offset: int) -> int:
        return bisect_right(self._runs, offset, key=lambda run: run.first) - 1

    def _split(self, offset: int) -> None:
        """Split the run that contains `offset`, so that one begins there."""
        if not self.start < offset < self.end:
            return
        index = self._index(offset)
        run = self._runs[index]
        if run.first < offset:
            self._runs.insert(index + 1, replace(run, first=offset))
            run.last = offset - 1
