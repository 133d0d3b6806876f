"""Finds the offsets that an unreadable batch covers, and where reading can continue.

A batch's checksum covers its header's span of offsets, so a damaged batch needs another witness for
its span: the following batch, or its own count of records. Without a witness the leader is asked
for later offsets until it returns a good batch.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.placed import placed
from ottla.lake.model.plan import Range
from ottla.lake.source.source import Reading
from ottla.record.header import HEADER_SIZE, BatchHeader, read_header
from ottla.record.reader import CorruptBatch, check_batch


class DamagedBatch(CorruptBatch):
    """Raised if a batch from `start` on cannot be read. `end` is the next offset, if known."""

    def __init__(self, start: int, end: int | None, cause: str) -> None:
        super().__init__(cause)
        self.start = start
        self.end = end
        self.cause = cause


def span_end(buffer: bytes, position: int, header: BatchHeader) -> int | None:
    """Return the offset after the damaged batch at `position`; None if nothing proves it."""
    claimed = header.last_offset + 1
    spans_records = header.record_count <= header.last_offset_delta + 1
    following = position + header.size
    if len(buffer) - following < HEADER_SIZE:
        return claimed if header.record_count == header.last_offset_delta + 1 else None
    follower = read_header(buffer, following)
    if follower.base_offset == claimed and spans_records:
        return claimed
    try:
        check_batch(buffer, following, follower)
    except CorruptBatch:
        return None
    if follower.base_offset <= header.base_offset:
        return None
    # A good following batch limits the span that a damaged header claims.
    return min(claimed, follower.base_offset) if spans_records else follower.base_offset


def next_readable(log: Reading, wanted: Range, damage: DamagedBatch) -> int:
    """Return the base offset of the first good batch after the damage.

    Asks at most twice for each of some sixty offsets: at growing distances, then between the last
    bad and the first good one. Raises OttlaError if no later offset can be read.
    """
    end = log.end_offset(wanted.topic, wanted.partition)
    last = end - 1
    low, distance = damage.start, 1
    best: int | None = None
    high = low
    while best is None:
        if low >= last:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{wanted.topic}-{wanted.partition} cannot be read from offset {damage.start} on "
                f"({damage.cause}), and the broker gives nothing behind it: restore the partition "
                "from a replica or a copy, or load up to there with "
                f"`--until {wanted.partition}:{damage.start}`",
            )
        high = min(damage.start + distance, last)
        best = _good_at(log, wanted, high, damage.start, end)
        low, distance = (low if best is not None else high), distance * 2
    high = min(high, best)
    while low + 1 < high:
        middle = (low + high) // 2
        found = _good_at(log, wanted, middle, damage.start, end)
        if found is None:
            low = middle
        else:
            best = min(best, found)
            high = min(middle, found)
    return best


def _good_at(log: Reading, wanted: Range, offset: int, behind: int, end: int) -> int | None:
    """Return the base offset of the good batch at `offset`, if it begins after `behind`.

    A batch at the wrong place is not good: offsets below its wrong base offset would be left out,
    and its records taken for others. The log ends at `end`.
    """
    for _ in range(2):
        try:
            buffer = log.peek(wanted.topic, wanted.partition, offset)
            if not placed(buffer, offset, end).batches:
                continue
            header = read_header(buffer)
            check_batch(buffer, 0, header)
        except CorruptBatch:
            continue
        is_behind = behind < header.base_offset and offset <= header.last_offset
        return header.base_offset if is_behind else None
    return None
