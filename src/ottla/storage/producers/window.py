"""Finds the last five batches of each producer; a snapshot has only the very last.

A producer may have five batches on the way when a broker goes down. Those that were appended and
not answered are sent again after the restart, and must be recognised, or they are appended twice.
"""

from collections.abc import Sequence

from ottla.record.header import BatchHeader
from ottla.storage.producers.state import (
    BATCHES_KEPT,
    SEQUENCE_MASK,
    AppendedBatch,
    ProducerEntry,
    ProducerStates,
)
from ottla.storage.segment.batch_walk import BadHeader, walk
from ottla.storage.segment.segment import Segment

# How much of a segment's end is looked at: little at first, more where that is not enough.
_WINDOW_BYTES = 64 << 10
_WINDOW_BYTES_MAX = 8 << 20
_BATCHES_MAX = 2_000
# For all segments together; batches of one second may be in many segments, if these are short.
_BYTES_MAX = 2 * _WINDOW_BYTES_MAX
_SEGMENTS_MAX = 32


def widen(producers: ProducerStates, segments: Sequence[Segment]) -> None:
    """Find the batches before those known, in the ends of the last segments.

    What cannot be read stays unknown, and is no error.
    """
    left_bytes = _BYTES_MAX
    for segment in segments[: -_SEGMENTS_MAX - 1 : -1]:
        wanted = {entry.producer_id: entry for entry in producers.entries.values() if _lacks(entry)}
        if not wanted or left_bytes <= 0:
            return
        if not segment.indexes.loaded:
            segment.load_indexes()
        window_bytes = _WINDOW_BYTES
        while _look(segment, window_bytes, wanted) and window_bytes < _WINDOW_BYTES_MAX:
            window_bytes *= 4
        left_bytes -= min(window_bytes, segment.size)


def _look(segment: Segment, window_bytes: int, wanted: dict[int, ProducerEntry]) -> bool:
    """Look at the end of a segment; whether it may help to look further back."""
    begin = segment.indexes.offsets.position_floor(max(0, segment.size - window_bytes))
    seen: dict[int, list[BatchHeader]] = {}
    count = 0
    try:
        for _, header in walk(segment.file, begin, segment.size, segment.base_offset):
            count += 1
            if header.producer_id in wanted and not header.is_control:
                seen.setdefault(header.producer_id, []).append(header)
    except BadHeader:
        return False
    for producer_id, headers in seen.items():
        entry = wanted[producer_id]
        for header in reversed(headers):
            _put_before(entry, header)
        if not _lacks(entry):
            del wanted[producer_id]
    return bool(wanted) and begin > 0 and count < _BATCHES_MAX


def _lacks(entry: ProducerEntry) -> bool:
    """Whether there may be batches before those known."""
    batches = entry.batches
    return 0 < len(batches) < BATCHES_KEPT and batches[0].first_sequence != 0


def _put_before(entry: ProducerEntry, header: BatchHeader) -> None:
    """Take in `header`, if it is the batch just before the first one known."""
    first = entry.batches[0]
    if (
        header.producer_epoch == entry.producer_epoch
        and header.base_offset < first.first_offset
        and header.last_sequence + 1 & SEQUENCE_MASK == first.first_sequence
        and len(entry.batches) < BATCHES_KEPT
    ):
        delta = header.last_offset_delta
        last_offset = header.base_offset + delta
        batch = AppendedBatch(header.last_sequence, last_offset, delta, header.max_timestamp)
        entry.batches.insert(0, batch)
        entry.chain_start = batch.first_sequence
