"""Distinguishes a torn end after a crash from damage, for bytes that are no valid batch.

A crash may lose, tear or leave empty what was not yet flushed; it cannot do so in front of
something that was flushed, for a flush covers all of a file before it. So the log is truncated
where nothing valid stands behind the first bad batch, or where the bad batch lies in a page that
was never written. A bad batch with valid ones behind it, in a page that was written, is damage:
to truncate there could drop acknowledged records. What lies in the next segment
is no sign of a flush by itself: a power cut may take the end of one file and leave the next.
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
        """Return `size` bytes from `position`, fewer only where there are no more."""
        ...


def valid_batch_behind(file: Bytes, position: int, size: int, base_offset: int) -> int:
    """Position of the first valid batch from the bad place `position` on, -1 for none.

    Every byte is tried as a beginning: the bad batch's own length may be what is wrong. An
    offset may be what is wrong, this one or an earlier one, so any of the segment's will do.
    """
    # A segment from `base_offset` on has offsets of the same 2^32 or the next, and magic 2.
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
    """Whether the bad batch at `position` runs into a page that never reached the disk.

    Such a page is zeros from its first byte. Zeros inside a batch may be its records', so the
    page must also cover a place where a header must stand: the bad batch's or the next one's.
    Not so with `anywhere`, after a power cut and above what was flushed: there a whole page of
    zeros anywhere in the bad batch is one that is missing.
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
    """Whether a page that begins in [position, end) is zeros.

    Or the rest of the page in which `position` lies, where that would hold a batch's header.
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
