"""Records why offsets are missing in a replica's copy: its leader had compacted them before.

Gaps are noted when a batch is copied, and again after a crash that lost unwritten notes. A leader's
own appends leave no gaps, so offsets missing between copied batches were missing at the leader. The
leader's ledger says below which offset its compaction has removed records.
"""

from ottla.ledger.history import History
from ottla.ledger.removals import BEFORE_COPY, Pass, SegmentRemovals
from ottla.record.header import BatchHeader
from ottla.storage.segment.batch_walk import BadHeader, walk
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments


def note_copied(
    removals: SegmentRemovals,
    header: BatchHeader,
    next_offset: int,
    compacted_below: int,
    now_ms: int,
) -> None:
    """Note which offsets are missing before and inside a copied batch.

    `next_offset` is the log end offset before the batch. Gaps above `compacted_below`, which the
    leader's ledger does not claim, stay unexplained.
    """
    end = header.last_offset + 1
    start = min(next_offset, header.base_offset)
    missing = end - start - header.record_count
    if missing > 0 and end <= compacted_below:
        removals.add(start, end, missing, Pass(BEFORE_COPY, now_ms, BEFORE_COPY))


def note_copied_batch(
    segments: Segments, header: BatchHeader, next_offset: int, compacted_below: int, now_ms: int
) -> None:
    """Note which offsets are missing before and inside the batch that was just copied."""
    # A gap too wide for an index lies between two segments, and belongs to the first.
    segment, active = segments[segments.floor(next_offset)], segments.active
    if segment is not active:
        base_offset = active.base_offset
        if base_offset <= compacted_below:
            made_by = Pass(BEFORE_COPY, now_ms, BEFORE_COPY)
            segment.removals.add(next_offset, base_offset, base_offset - next_offset, made_by)
        next_offset = base_offset
    note_copied(active.removals, header, next_offset, compacted_below, now_ms)


def note_copied_gaps(
    segments: list[Segment], history: History, recovery_point: int, end: int
) -> None:
    """Bring the notes in line with the batches after an unclean stop. Raises OSError.

    Notes about truncated offsets are dropped. Batches above the recovery point are read again.
    """
    recount_truncated(segments[-1], end)
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


def recount_truncated(segment: Segment, end: int) -> None:
    """Drop notes about offsets from `end` on, the segment's new end. Raises OSError."""
    cell = segment.removals.truncate(end)
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
