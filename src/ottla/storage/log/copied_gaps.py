"""Holes in what a replica copied: its leader had compacted before.

They are noted as they come, and again after a crash, as far as the notes were not written yet. A
leader's own appends make no holes; so what is missing between copied batches was missing at the
leader, whose own ledger says below which offset its passes have removed records.
"""

from ottla.ledger.history import History
from ottla.ledger.removals import BEFORE_COPY, Pass, Removals
from ottla.record.header import BatchHeader
from ottla.storage.log.batch_walk import BadHeader, walk
from ottla.storage.segment.segment import Segment


def note_copied(
    removals: Removals, header: BatchHeader, next_offset: int, compacted_below: int, now_ms: int
) -> None:
    """Note what is missing before a copied batch and in it; `next_offset`: where it could begin.

    What the leader did not speak of is not noted, and stays unexplained.
    """
    end = header.last_offset + 1
    start = min(next_offset, header.base_offset)
    missing = end - start - header.record_count
    if missing > 0 and end <= compacted_below:
        removals.add(start, end, missing, Pass(BEFORE_COPY, now_ms, BEFORE_COPY))


def note_copied_gaps(
    segments: list[Segment], history: History, recovery_point: int, end: int
) -> None:
    """Bring the notes in step with the batches after an unclean stop. Raises OSError.

    Notes of what was cut off go; what stands above the recovery point is looked at again.
    """
    recount_cut(segments[-1], end)
    if history.compacted_below <= recovery_point:
        return
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end
        if following <= recovery_point:
            continue
        removals = segment.removals
        start = max(recovery_point, removals.end, segment.base_offset)
        try:
            position = segment.position_of(start)
            next_offset = start
            for _, header in walk(segment.file, position, segment.size, segment.base_offset):
                if header.base_offset >= start:
                    note_copied(removals, header, next_offset, history.compacted_below, -1)
                next_offset = header.last_offset + 1
        except BadHeader as bad:
            raise segment.corrupt(bad) from None


def recount_cut(segment: Segment, end: int) -> None:
    """The segment ends at `end` now: forget what was noted of later offsets. Raises OSError."""
    cell = segment.removals.cut(end)
    if cell is None:
        return
    holes, next_offset = 0, cell.start
    position = segment.position_of(cell.start)
    try:
        for _, header in walk(segment.file, position, segment.size, segment.base_offset):
            holes += max(0, header.last_offset + 1 - next_offset - header.record_count)
            next_offset = header.last_offset + 1
    except BadHeader as bad:
        raise segment.corrupt(bad) from None
    segment.removals.recount(cell, holes + max(0, end - next_offset))
