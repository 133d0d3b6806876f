"""The offsets that compaction removed from a segment: counts by range and pass.

A cell covers whole batches and the gaps before them. A batch keeps its offset range as long as any
of its records is left, so a cell never begins or ends inside a batch. The sum of a cell's counts
must equal the holes that a walk over its range finds, so each proves the other.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Removed by a pass of the leader before this replica was copied from it.
BEFORE_COPY = 0
# Removed before this log had a ledger.
UNRECORDED = -1

# The approximate number of offsets in a cell; the most cells in a segment; the most separate
# passes.
CELL_OFFSETS = 4096
CELLS_MAX = 4096
PASSES_MAX = 16


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of the cleaner over this replica, counted from 1; time in ms since 1970.

    If older passes were merged into it, `since` is the number of the oldest.
    """

    number: int
    at_ms: int
    since: int


@dataclass(slots=True)
class Cell:
    """A range of offsets in which pass `number` removed `counts[number]` offsets."""

    start: int
    end: int
    counts: dict[int, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class SegmentRemovals:
    """The cells of one segment, in order."""

    # Invariant: cells are ascending and do not overlap; each number in a cell's counts is in
    # `passes`.

    __slots__ = ("cells", "changes", "passes", "reach")

    def __init__(
        self, cells: Iterable[Cell] = (), passes: Iterable[Pass] = (), reach: int = 0
    ) -> None:
        self.cells = list(cells)
        self.passes = {one.number: one for one in passes}
        # The end of the range that the cleaned segment covers; 0 if it was not cleaned.
        self.reach = reach
        # Counts changes, so that a writer knows whether its file is up to date.
        self.changes = 0

    @property
    def end(self) -> int:
        """The offset up to which removals are noted; 0 for none."""
        return self.cells[-1].end if self.cells else 0

    def add(self, start: int, end: int, count: int, made_by: Pass) -> None:
        """Note that `made_by` removed `count` offsets in [start, end).

        The range consists of whole batches and gaps.
        """
        assert 0 < count <= end - start
        self.changes += 1
        self._note_pass(made_by)
        number = self._resolved(made_by.number)
        cells = self.cells
        first = bisect_right(cells, start, key=lambda cell: cell.start)
        if first and cells[first - 1].end > start:
            first -= 1
        last = bisect_left(cells, end, key=lambda cell: cell.start)
        if first < last:
            self._put_together(first, last, start, end)
        elif first and end - cells[first - 1].start <= CELL_OFFSETS:
            first -= 1
            cells[first].end = end
        else:
            cells.insert(first, Cell(start, end, {}))
        counts = cells[first].counts
        counts[number] = counts.get(number, 0) + count
        if len(cells) > CELLS_MAX:
            self._coarsen()

    def join(self, later: "SegmentRemovals") -> None:
        """Add the removals of the segment that follows this one."""
        for one in later.passes.values():
            self._note_pass(one)
        for cell in later.cells:
            counts: dict[int, int] = {}
            for number, count in cell.counts.items():
                number = self._resolved(number)
                counts[number] = counts.get(number, 0) + count
            self.cells.append(Cell(cell.start, cell.end, counts))
        while len(self.cells) > CELLS_MAX:
            self._coarsen()
        self.changes += 1

    def truncate(self, end: int) -> Cell | None:
        """Drop offsets from `end` on; return the shortened cell, which must be recounted."""
        if self.end <= end:
            return None
        self.changes += 1
        while self.cells and self.cells[-1].start >= end:
            self.cells.pop()
        if not self.cells or self.cells[-1].end <= end:
            return None
        self.cells[-1].end = end
        return self.cells[-1]

    def recount(self, cell: Cell, count: int) -> None:
        """Attribute the `count` holes of a shortened cell to the latest passes."""
        self.changes += 1
        if count:
            cell.counts = {max(cell.counts): count}
        else:
            self.cells.remove(cell)

    def covering(self, start: int, end: int) -> Sequence[Cell]:
        """Return the cells that overlap [start, end)."""
        first = bisect_right(self.cells, start, key=lambda cell: cell.end)
        last = bisect_left(self.cells, end, key=lambda cell: cell.start)
        return self.cells[first:last]

    def _resolved(self, number: int) -> int:
        """Return the pass into which an older one was merged, or the pass itself."""
        if number in self.passes:
            return number
        return min(known for known in self.passes if known > number)

    def _note_pass(self, made_by: Pass) -> None:
        """Note the pass; if there are too many, the oldest ones are merged."""
        known = self.passes.get(made_by.number, made_by)
        self.passes[made_by.number] = min(known, made_by, key=lambda one: one.since)
        own = sorted(number for number in self.passes if number > 0)
        if len(own) > PASSES_MAX:
            older, newer = own[0], own[1]
            kept = self.passes[newer]
            self.passes[newer] = Pass(newer, kept.at_ms, self.passes.pop(older).since)
            for cell in self.cells:
                if older in cell.counts:
                    cell.counts[newer] = cell.counts.get(newer, 0) + cell.counts.pop(older)

    def _put_together(self, first: int, last: int, start: int, end: int) -> None:
        """Merge the cells from number `first` to before `last` into one that covers both bounds."""
        joined = Cell(start, end, {})
        for cell in self.cells[first:last]:
            joined.start = min(joined.start, cell.start)
            joined.end = max(joined.end, cell.end)
            for number, count in cell.counts.items():
                joined.counts[number] = joined.counts.get(number, 0) + count
        self.cells[first:last] = [joined]

    def _coarsen(self) -> None:
        for number in range(len(self.cells) // 2):
            pair = self.cells[number : number + 2]
            self._put_together(number, number + 2, pair[0].start, pair[1].end)
