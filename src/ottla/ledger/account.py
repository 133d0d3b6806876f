"""The account of a log range: the state or the fate of each of its offsets.

    end - start = data + control + aborted + undecided + compacted + deleted + lost + unexplained

Each term has its own evidence. Records and control batches are counted from batch headers, aborted
records from the transaction index. Compacted offsets are counted from the notes of each cleaner
pass, and the walk must find as many holes. Deleted offsets are counted from the notes of retention
and DeleteRecords, lost offsets from the notes of a truncated replica.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ottla.ledger.history import Evidence, Gone, History, Loss
from ottla.ledger.removals import UNRECORDED, Cell, Pass


class Kind(Enum):
    """The kind of records in a batch."""

    DATA = "data"
    CONTROL = "control"
    ABORTED = "aborted"
    UNDECIDED = "undecided"


@dataclass(slots=True)
class Account:
    """Counts of offsets in [start, end).

    `passes` and `deletions` break down `compacted` and `deleted`. `replaced` counts offsets that
    were lost and then given to other records; these are also counted as the records that they are
    now.
    """

    start: int
    end: int
    data: int = 0
    control: int = 0
    aborted: int = 0
    undecided: int = 0
    compacted: int = 0
    deleted: int = 0
    lost: int = 0
    replaced: int = 0
    passes: dict[Pass, int] = field(default_factory=dict)
    deletions: list[Gone] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """Offsets that no evidence explains; negative if two explain the same ones."""
        terms = (
            self.data,
            self.control,
            self.aborted,
            self.undecided,
            self.compacted,
            self.deleted,
            self.lost,
        )
        return self.end - self.start - sum(terms)


class Counting:
    """Counts [start, end) while a log's batches are passed in, in order.

    The walk begins at the start of the first cell and continues to the end of the last one, so that
    all holes of each cell are seen, even those outside of the requested range.
    """

    def __init__(
        self,
        start: int,
        end: int,
        log_start: int,
        cells: Sequence[Cell],
        passes: Mapping[int, Pass],
    ) -> None:
        """Start counting; `passes` are the cleaner passes named in `cells`.

        `cells` are those of all segments that overlap [max(start, log_start), end), in order.
        """
        self.account = Account(start, end)
        self._log_start = log_start
        # Nothing below this offset is counted from batches.
        self._floor = max(start, log_start)
        self._position = min(self._floor, cells[0].start) if cells else self._floor
        self._cells = cells
        self._passes = passes
        # Per cell: all holes, and those in the requested range.
        self._found = [[0, 0] for _ in cells]
        self._next = 0
        # Offset ranges in the requested range that no cell covers.
        self.uncovered: list[tuple[int, int]] = []

    @property
    def walk_start(self) -> int:
        """The offset at which the walk must begin, or that its first batch must contain."""
        return self._position

    @property
    def walk_end(self) -> int:
        """The offset at which the walk may end."""
        return max(self.account.end, self._cells[-1].end if self._cells else 0)

    def must_read_records(self, base_offset: int, last_offset: int, record_count: int) -> bool:
        """Whether the batch's records must be read to find those in the requested range."""
        if record_count in (0, last_offset - base_offset + 1):
            return False
        floor, end = self._floor, self.account.end
        return base_offset < floor <= last_offset or base_offset < end <= last_offset

    def wants(self, offset: int) -> bool:
        """Whether the record at `offset` is in the requested range."""
        return self._floor <= offset < self.account.end

    # Hot: once per batch.
    def batch(
        self,
        base_offset: int,
        last_offset: int,
        record_count: int,
        kind: Kind,
        inside: int | None = None,
    ) -> None:
        """Count a batch; `inside` is the number of its requested records, if they were read."""
        account = self.account
        self.gap(base_offset)
        self._position = last_offset + 1
        wanted = self._wanted(base_offset, last_offset + 1)
        span = last_offset - base_offset + 1
        if inside is None:
            inside = wanted if record_count == span else min(record_count, wanted)
        match kind:
            case Kind.DATA:
                account.data += inside
            case Kind.CONTROL:
                account.control += inside
            case Kind.ABORTED:
                account.aborted += inside
            case Kind.UNDECIDED:
                account.undecided += inside
        if record_count != span:
            self._holes(base_offset, span - record_count, wanted - inside)

    def gap(self, end: int) -> None:
        """Count the gap up to `end`, where the next batch or segment begins, or the log ends."""
        position = self._position
        while position < end:
            cell = self._cell(position)
            if cell is None:
                upto = min(end, self._next_start())
                self._uncovered(position, upto)
            else:
                upto = min(end, cell.end)
                self._note(upto - position, self._wanted(position, upto))
            position = upto
        self._position = max(self._position, end)

    def close(self, history: History, log_end: int) -> Account:
        """Return the whole account, with the offsets before the log's start and after its end."""
        account = self.account
        for number, cell in enumerate(self._cells):
            self._settle(cell, *self._found[number])
        for first, last in self.uncovered:
            known = min(last, history.unrecorded_below) - first
            if known > 0:
                self._compacted(Pass(UNRECORDED, -1, UNRECORDED), known)
        account.deletions = history.entries(account.start, min(account.end, self._log_start))
        account.evidence = [
            one for one in history.evidence if one.start < account.end and account.start < one.end
        ]
        account.deleted = sum(sum(one.counts.values()) for one in account.deletions)
        self._lost(history.lost, log_end)
        return account

    # -- holes

    def _cell(self, offset: int) -> Cell | None:
        """The cell that contains `offset`; earlier cells are dropped."""
        cells = self._cells
        while self._next < len(cells) and cells[self._next].end <= offset:
            self._next += 1
        if self._next < len(cells) and cells[self._next].start <= offset:
            return cells[self._next]
        return None

    def _next_start(self) -> int:
        return self._cells[self._next].start if self._next < len(self._cells) else 2**63 - 1

    def _wanted(self, start: int, end: int) -> int:
        return max(0, min(end, self.account.end) - max(start, self._floor))

    def _note(self, holes: int, wanted: int) -> None:
        found = self._found[self._next]
        found[0] += holes
        found[1] += wanted

    def _holes(self, base_offset: int, holes: int, wanted: int) -> None:
        """Count the holes inside a batch."""
        if self._cell(base_offset) is not None:
            self._note(holes, wanted)
        elif wanted:
            self.uncovered.append((base_offset, base_offset + wanted))

    def _uncovered(self, start: int, end: int) -> None:
        first, last = max(start, self._floor), min(end, self.account.end)
        if first < last:
            self.uncovered.append((first, last))

    # -- explanations

    def _settle(self, cell: Cell, found: int, wanted: int) -> None:
        """Attribute a cell's holes to the passes that noted them."""
        account, noted = self.account, cell.total
        if self._floor <= cell.start and cell.end <= account.end:
            for number, count in cell.counts.items():
                self._compacted(self._pass(number), count)
            return
        explained = min(wanted, noted) if found > noted else wanted
        if explained > 0:
            numbers = sorted(cell.counts)
            latest = self._pass(numbers[-1])
            since = min(self._pass(number).since for number in numbers)
            self._compacted(Pass(latest.number, latest.at_ms, since), explained)

    def _pass(self, number: int) -> Pass:
        return self._passes.get(number) or Pass(number, -1, number)

    def _compacted(self, made_by: Pass, count: int) -> None:
        self.account.compacted += count
        self.account.passes[made_by] = self.account.passes.get(made_by, 0) + count

    # -- offsets after the end

    def _lost(self, losses: Sequence[Loss], log_end: int) -> None:
        account = self.account
        counted = max(account.start, log_end)
        for loss in sorted(losses, key=lambda one: one.start):
            first, last = max(loss.start, account.start), min(loss.end, account.end)
            if first >= last:
                continue
            account.losses.append(loss)
            account.replaced += max(0, min(last, log_end) - first)
            if last > max(first, counted):
                account.lost += last - max(first, counted)
                counted = last
