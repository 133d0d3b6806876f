"""Reads every good batch of a log with damaged files, and reports the rest as damage.

The checksum covers a batch from its attributes on. So a batch with the right checksum is good even
if its base offset, length or magic number is wrong; these are corrected from the batches around it.
After a batch with a wrong checksum, reading continues where the batch should end if a good batch
begins there, otherwise at the next good batch. File contents never cause an exception. Coordinators
use this, because they must load what they can. All other readers use `Log.read`, which refuses
damage.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ottla.record.header import (
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    computed_crc,
    read_header,
    set_base_offset,
)
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.disk.filesystem import File
from ottla.storage.recovery.damage import valid_batch_behind
from ottla.storage.segment.batch_walk import BATCH_LENGTH_MIN
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments

# How many positions after damage are tried that look like batches but are not.
_TRIES_MAX = 100
# A batch with a wrong length is repaired up to this size.
_REPAIR_BYTES_MAX = 32 << 20


class Whole(NamedTuple):
    """A good batch at `place` of `buffer`. `is_repaired` says that its header was corrected."""

    buffer: bytes | bytearray
    place: int
    header: BatchHeader
    is_repaired: bool = False


class Damage(NamedTuple):
    """Bytes of a file that cannot be read, and the offset that was expected there."""

    path: str
    position: int
    size: int
    offset: int
    what: str


class Readable(Protocol):
    """The part of a log that `readable_batches` uses."""

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    offline: str


class ReadableSegment:
    """The first `size` bytes of one segment's file, whose offsets are in [base, end)."""

    def __init__(self, file: File, size: int, base_offset: int, end_offset: int) -> None:
        self._file = file
        self._size = size
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._next_offset = base_offset
        # Where the next read begins.
        self.position = 0

    @property
    def is_done(self) -> bool:
        return self.position >= self._size

    def read(self, window_bytes: int) -> Iterator[Whole | Damage]:
        """Read about `window_bytes` more, or one batch. Raises OSError."""
        size = min(window_bytes, self._size - self.position)
        window = self._file.pread(size, self.position)
        if len(window) == size and size >= HEADER_SIZE:
            needed = read_header(window).size
            if size < needed <= self._size - self.position:
                window = self._file.pread(needed, self.position)
        begin, place = self.position, 0
        while place + HEADER_SIZE <= len(window):
            header = read_header(window, place)
            fault = self._fault(header, self._size - begin - place)
            if fault is None and place + header.size > len(window) and place > 0:
                return
            if fault is None and computed_crc(window, place, header.size) != header.crc:
                fault = "the checksum of the batch is wrong"
            end = place + header.size
            if fault is None and self._is_misplaced(header, window[end : end + HEADER_SIZE]):
                fault = f"base offset {header.base_offset} is higher than the next batch's"
            if fault is not None:
                yield self._around(header, fault)
                return
            place += header.size
            self.position = begin + place
            self._next_offset = header.last_offset + 1
            yield Whole(window, place - header.size, header)
        if place == 0 or 0 < self._size - self.position < HEADER_SIZE:
            # No header fits any more, or the file is shorter than it was.
            yield self._lost(self._size, "fewer bytes than a batch has")

    def _fault(self, header: BatchHeader, room: int) -> str | None:
        """Return the fault of a header that has `room` bytes to the segment's end."""
        if header.magic != MAGIC:
            return f"magic is {header.magic}, not {MAGIC}"
        if not BATCH_LENGTH_MIN <= header.batch_length <= room - LENGTH_OVERHEAD:
            return f"batch length {header.batch_length} is wrong"
        if header.base_offset < self._next_offset:
            return f"base offset {header.base_offset} after {self._next_offset - 1}"
        if header.last_offset_delta < 0 or header.last_offset >= self._end_offset:
            return f"base offset {header.base_offset} is too high for its segment"
        return None

    def _is_misplaced(self, header: BatchHeader, behind: bytes | bytearray) -> bool:
        """Return whether the next header shows that the batch's base offset is too high or too low.

        The batch is at `position`. `behind` holds the bytes after it, as far as they were read.
        """
        if header.base_offset <= self._next_offset:
            return header.base_offset < self._next_offset
        if len(behind) < HEADER_SIZE:
            behind = self._file.pread(HEADER_SIZE, self.position + header.size)
        if len(behind) < HEADER_SIZE:
            return False
        following = read_header(behind)
        return (
            following.magic == MAGIC
            and self._next_offset < following.base_offset <= header.last_offset
        )

    def _around(self, header: BatchHeader, fault: str) -> Whole | Damage:
        """Repair the batch at `position`, or skip it as damage."""
        begin, end = self.position, self.position + header.size
        is_inside = begin + HEADER_SIZE <= end <= self._size
        if is_inside:
            repaired = self._repaired(end)
            if repaired is not None:
                return repaired
            if end == self._size or self._good_from(end) == end:
                return self._lost(end, fault)
        following = self._good_from(begin + 1)
        end = self._size if following < 0 else following
        return self._repaired(end) or self._lost(end, fault)

    def _repaired(self, end: int) -> Whole | None:
        """Return the repaired batch from `position` to `end`; None if its checksum is wrong."""
        size = end - self.position
        if not HEADER_SIZE <= size <= _REPAIR_BYTES_MAX:
            return None
        batch = bytearray(self._file.pread(size, self.position))
        if len(batch) != size:
            return None
        header = read_header(batch)
        if computed_crc(batch, 0, size) != header.crc or header.last_offset_delta < 0:
            return None
        batch[8:12] = (size - LENGTH_OVERHEAD).to_bytes(4, "big")
        batch[MAGIC_POSITION] = MAGIC
        header = read_header(batch)
        if header.last_offset >= self._end_offset or self._is_misplaced(header, b""):
            set_base_offset(batch, 0, self._next_offset)
            header = read_header(batch)
        self.position = end
        self._next_offset = header.last_offset + 1
        return Whole(batch, 0, header, is_repaired=True)

    def _good_from(self, position: int) -> int:
        """Return where the first good batch begins at or after `position`, -1 for none."""
        for _ in range(_TRIES_MAX):
            found = valid_batch_behind(self._file, position, self._size, self._base_offset)
            if found < 0:
                return -1
            header = read_header(self._file.pread(HEADER_SIZE, found))
            if self._base_offset <= header.base_offset <= header.last_offset < self._end_offset:
                return found
            position = found + 1
        return -1

    def _lost(self, end: int, what: str) -> Damage:
        damage = Damage(
            self._file.path, self.position, end - self.position, self._next_offset, what
        )
        self.position = end
        return damage


def readable_batches(log: Readable, window_bytes: int) -> Iterator[list[Whole | Damage]]:
    """See `Log.readable`."""
    start, end = log.log_start_offset, log.log_end_offset
    offset = start
    reading: ReadableSegment | None = None
    current: Segment | None = None
    while offset < end and not log.offline:
        number = log.segments.floor(offset)
        segment = log.segments[number]
        is_last = number + 1 == len(log.segments)
        limit = end if is_last else log.segments[number + 1].base_offset
        try:
            if reading is None or segment is not current:
                # Begin a segment: the first or next one, or a compacted one in place of `current`.
                current, reading = segment, _readable_segment(segment, start, limit)
            found = [] if reading.is_done else list(reading.read(window_bytes))
        except OSError as error:
            raise storage_error(error, segment.path(), "read") from error
        yield [
            each
            for each in found
            if isinstance(each, Damage) or each.is_repaired or each.header.last_offset >= start
        ]
        if reading.is_done:
            offset, reading = limit, None


def _readable_segment(segment: Segment, start_offset: int, end_offset: int) -> ReadableSegment:
    """Prepare to read from the batch with `start_offset`, or the beginning. Raises OSError."""
    reading = ReadableSegment(segment.file, segment.size, segment.base_offset, end_offset)
    if start_offset > segment.base_offset:
        with contextlib.suppress(StorageError):
            reading.position = segment.position_of(start_offset)
    return reading
