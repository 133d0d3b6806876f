"""Accounts for the offsets of a log's range: prepared on the loop, walked in any thread."""

from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.ledger.account import Account, Counting, Kind
from ottla.ledger.history import History
from ottla.ledger.removals import Cell, Pass
from ottla.record.header import BatchHeader
from ottla.record.reader import records
from ottla.storage.disk.filesystem import File
from ottla.storage.log.log import Log
from ottla.storage.segment.batch_walk import BadHeader, walk


class Moved(Exception):
    """The log changed during the walk; prepare the walk again."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A byte range of a segment's file."""

    file: File
    base_offset: int
    position: int
    end: int


@dataclass(slots=True)
class _Transactions:
    """The aborted and the undecided transactions, by producer."""

    # First and last offset, the latest first; transactions that the walk has passed are dropped.
    aborted: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    undecided: dict[int, int] = field(default_factory=dict)

    def kind(self, header: BatchHeader) -> Kind:
        """Return the kind of the batch's records."""
        if header.is_control:
            return Kind.CONTROL
        if not header.is_transactional:
            return Kind.DATA
        spans = self.aborted.get(header.producer_id)
        while spans and spans[-1][1] < header.base_offset:
            spans.pop()
        if spans and spans[-1][0] <= header.base_offset:
            return Kind.ABORTED
        if self.undecided.get(header.producer_id, header.base_offset + 1) <= header.base_offset:
            return Kind.UNDECIDED
        return Kind.DATA


class Accounting:
    """One walk over [start, end) of a log.

    Create it on the event loop. `run` blocks, and may be called from any thread.
    """

    def __init__(self, log: Log, start: int, end: int) -> None:
        """Prepare the walk.

        Raises OttlaError OFFSET_OUT_OF_RANGE for offsets the log never contained.
        """
        self._check(log, start, end)
        self._log = log
        self._truncations, self._segments = log.truncations, log.segments.as_list()
        self._history: History = log.ledger.history.copy()
        self._log_end = log.log_end_offset
        floor, ceiling = max(start, log.log_start_offset), min(end, self._log_end)
        cells, passes = _cells(log, floor, ceiling)
        self._counting = Counting(start, end, log.log_start_offset, cells, passes)
        self._transactions = _transactions(log, self._counting)
        self._pieces = self._pieces_between(floor, ceiling)

    @staticmethod
    def _check(log: Log, start: int, end: int) -> None:
        known = max([log.log_end_offset, *(loss.end for loss in log.ledger.history.lost)])
        if not 0 <= start <= end <= known:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{log.topic_partition}: offsets {start} to {end} are not within 0 and {known}, "
                "where the log ends",
            )

    def _pieces_between(self, floor: int, ceiling: int) -> list[_Piece]:
        if floor >= ceiling:
            return []
        segments, counting = self._segments, self._counting
        pieces: list[_Piece] = []
        for number in range(self._log.segments.floor(counting.walk_start), len(segments)):
            segment = segments[number]
            if segment.base_offset >= counting.walk_end:
                break
            position = 0
            if not pieces and counting.walk_start > segment.base_offset:
                position = segment.position_of(counting.walk_start)
            pieces.append(_Piece(segment.file, segment.base_offset, position, segment.size))
        return pieces

    @property
    def still_holds(self) -> bool:
        """Whether the log is unchanged except for appends. To be called on the loop."""
        log = self._log
        held = log.segments.as_list()[: len(self._segments)]
        return log.truncations == self._truncations and held == self._segments

    def run(self) -> Account:
        """Walk. Raises Moved, OSError."""
        counting = self._counting
        for piece in self._pieces:
            try:
                for position, header in walk(
                    piece.file, piece.position, piece.end, piece.base_offset
                ):
                    if header.base_offset >= counting.walk_end:
                        break
                    self._batch(piece, position, header)
            except BadHeader as bad:
                raise Moved(bad.what) from bad
        if self._pieces:
            counting.gap(min(self._log_end, counting.walk_end))
        return counting.close(self._history, self._log_end)

    def _batch(self, piece: _Piece, position: int, header: BatchHeader) -> None:
        counting = self._counting
        base_offset, last_offset, count = (
            header.base_offset,
            header.last_offset,
            header.record_count,
        )
        inside = None
        if counting.must_read_records(base_offset, last_offset, count):
            batch = piece.file.pread(header.size, position)
            inside = sum(
                counting.wants(record.offset)
                for record in records(batch, 0, header, check_crc=False)
            )
        kind = self._transactions.kind(header)
        counting.batch(base_offset, last_offset, count, kind, inside)


def _cells(log: Log, start: int, end: int) -> tuple[list[Cell], dict[int, Pass]]:
    """Return copies of the cells that overlap [start, end), and the passes that they name."""
    cells: list[Cell] = []
    passes: dict[int, Pass] = {}
    if start >= end:
        return cells, passes
    for number in range(log.segments.floor(start), len(log.segments)):
        segment = log.segments[number]
        if segment.base_offset >= end:
            break
        for cell in segment.removals.covering(start, end):
            cells.append(Cell(cell.start, cell.end, dict(cell.counts)))
            for one in (segment.removals.passes[number] for number in cell.counts):
                known = passes.get(one.number, one)
                passes[one.number] = min(known, one, key=lambda found: found.since)
    return cells, passes


def _transactions(log: Log, counting: Counting) -> _Transactions:
    found = _Transactions()
    for entry in log.segments.aborted_transactions(counting.walk_start, counting.walk_end):
        spans = found.aborted.setdefault(entry.producer_id, [])
        spans.append((entry.first_offset, entry.last_offset))
    for spans in found.aborted.values():
        spans.sort(reverse=True)
    for first_offset, producer_id in log.producers.open_transactions.items():
        found.undecided[producer_id] = min(
            first_offset, found.undecided.get(producer_id, first_offset)
        )
    return found
