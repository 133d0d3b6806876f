"""The batches of a Fetch answer whose positions are plausible.

No checksum covers a batch's base offset, and a broker sends the bytes of its disk. So a flipped bit
there would move records to other offsets, and readers would skip the following ones. It is detected
by three rules: the offsets of a log's batches rise, the first batch reaches the requested offset,
and all are below the high watermark.
"""

from typing import NamedTuple

from ottla.record.header import HEADER_SIZE, BatchHeader, read_header
from ottla.record.reader import CorruptBatch, batches


class Placed(NamedTuple):
    """Whole batches, the offset after them, and the leader epoch of the last one.

    Both numbers are -1 if there is no batch. `damage` is why the following bytes were left out;
    None if they are only an incomplete batch.
    """

    batches: memoryview
    next_offset: int
    leader_epoch: int
    damage: CorruptBatch | None


class _Behind(NamedTuple):
    """The position after a batch: its end in the answer, and the next offset."""

    end: int
    next_offset: int
    leader_epoch: int


# Hot: the loop below runs once per batch.
def placed(records: object, offset: int, high_watermark: int) -> Placed:
    """Check the batch headers of a fetch from `offset`. Checksums are not computed."""
    view = memoryview(records if isinstance(records, bytes | bytearray | memoryview) else b"")
    # `sure` is the position after the last batch that leaves no gap to the batch before it.
    last = sure = _Behind(0, offset, -1)
    damage: CorruptBatch | None = None
    try:
        for position, header in batches(view):
            if header.base_offset < last.next_offset and not _reaches(header, last):
                # This batch or the one before it is misplaced: they are not consecutive.
                last = sure
                raise CorruptBatch(
                    f"a batch of offsets {header.base_offset} to {header.last_offset} stands where "
                    f"offset {last.next_offset} is expected"
                )
            if 0 <= high_watermark <= header.base_offset:
                raise CorruptBatch(
                    f"a batch has base offset {header.base_offset}, and the high watermark is "
                    f"{high_watermark}"
                )
            follows = header.base_offset <= last.next_offset
            last = _Behind(position + header.size, header.last_offset + 1, header.leader_epoch)
            if follows:
                sure = last
    except CorruptBatch as error:
        damage = error
    if last.end == 0:
        if damage is None and len(view) >= HEADER_SIZE:
            damage = _incomplete(view)
        return Placed(view[:0], -1, -1, damage)
    return Placed(view[: last.end], last.next_offset, last.leader_epoch, damage)


def _reaches(header: BatchHeader, last: _Behind) -> bool:
    """Whether a batch may be the first of an answer, which may begin below the requested offset."""
    return last.end == 0 and header.last_offset >= last.next_offset


def _incomplete(view: memoryview) -> CorruptBatch:
    """Return the error for an answer without a whole batch.

    A leader always sends at least one whole batch (KIP-74).
    """
    header = read_header(view)
    return CorruptBatch(
        f"batch at offset {header.base_offset} claims {header.size} bytes, and the log gives "
        f"{len(view)}"
    )
