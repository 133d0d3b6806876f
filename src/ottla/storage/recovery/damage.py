"""Distinguishes a torn end after a crash from damage, for bytes that are no valid batch.

A crash may lose, tear or leave empty what was not yet flushed. It cannot do so to bytes before
flushed ones, because a flush covers all earlier bytes of the file. So the log is truncated if no
valid batch follows the first bad one, or if the bad batch lies in a page that was never written. If
valid batches follow and the page was written, it is damage: a truncation could drop acknowledged
records. Batches in the next segment alone do not prove a flush: a power cut may take the end of one
file and leave the next.
"""

import re
from struct import pack
from typing import Protocol

from ottla.record.header import HEADER_SIZE, MAGIC, MAGIC_POSITION, computed_crc, read_header
from ottla.storage.disk.filesystem import File
from ottla.storage.segment.batch_walk import header_fault

# The unit in which the page cache writes.
PAGE_BYTES = 4096
_CHUNK_BYTES = 4 << 20


class Bytes(Protocol):
    """Bytes that can be read at any position."""

    def pread(self, size: int, position: int, /) -> bytes:
        """Return `size` bytes from `position`, fewer only if there are no more."""
        ...


def valid_batch_behind(file: Bytes, position: int, size: int, base_offset: int) -> int:
    """Return the position of the first valid batch at or after `position`, -1 for none.

    The search begins at or after a bad batch, whose length may be wrong, so every byte is tried as
    the start of a batch. Offsets before it may be wrong too, so any offset that the segment can
    have is accepted.
    """
    # Offsets in this segment have the upper 32 bits of `base_offset`, or one more; magic is 2.
    high = base_offset >> 32
    starts = b"|".join(re.escape(pack(">i", half & 0x7FFFFFFF)) for half in (high, high + 1))
    pattern = re.compile(b"(?s)(?=(?:%s).{12}%s)" % (starts, re.escape(bytes([MAGIC]))))
    begin = position
    while begin + HEADER_SIZE <= size:
        chunk = file.pread(min(_CHUNK_BYTES, size - begin), begin)
        for match in pattern.finditer(chunk):
            if _is_batch(file, begin + match.start(), size, base_offset):
                return begin + match.start()
        begin += max(1, len(chunk) - HEADER_SIZE)
    return -1


def _is_batch(file: Bytes, position: int, size: int, base_offset: int) -> bool:
    head = file.pread(HEADER_SIZE, position)
    if len(head) < HEADER_SIZE:
        return False
    header = read_header(head)
    if header_fault(header, size - position, base_offset) is not None:
        return False
    if header.record_count < 0 or header.last_offset_delta + 1 < header.record_count:
        return False
    batch = file.pread(header.size, position)
    return len(batch) == header.size and computed_crc(batch, 0, header.size) == header.crc


def is_unwritten(
    file: File, position: int, claimed_end: int, size: int, *, anywhere: bool = False
) -> bool:
    """Return whether the bad batch at `position` runs into a page that never reached the disk.

    Such a page is all zeros. Zeros inside a batch may belong to its records, so the page must also
    cover the place of a header, either of the bad batch or of the next one. With `anywhere`,
    for bytes that were not flushed before a power cut, any whole page of zeros in the bad batch is
    a missing page.
    """
    if anywhere and _has_empty_page(file, position, claimed_end):
        return True
    page = (claimed_end - 1) // PAGE_BYTES * PAGE_BYTES
    if page < position:
        return False
    zeros = file.pread(min(PAGE_BYTES, size - page), page)
    covers_header = page == position or page + len(zeros) - claimed_end > MAGIC_POSITION
    return covers_header and not any(zeros)


def _has_empty_page(file: File, position: int, end: int) -> bool:
    """Return whether a page that begins in [position, end) is all zeros.

    The rest of the page in which `position` lies is tested too, if it can hold a batch's header.
    """
    first = -(-position // PAGE_BYTES) * PAGE_BYTES
    if first - position > MAGIC_POSITION and not any(file.pread(first - position, position)):
        return True
    for begin in range(first, end, _CHUNK_BYTES):
        chunk = file.pread(min(_CHUNK_BYTES, end - begin + PAGE_BYTES), begin)
        for place in range(0, min(len(chunk), end - begin), PAGE_BYTES):
            if not any(chunk[place : place + PAGE_BYTES]):
                return True
    return False
