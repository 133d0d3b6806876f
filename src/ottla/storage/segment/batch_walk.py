"""Walking from batch to batch through a segment, by their headers alone."""

from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

from ottla.base.varint import read_zigzag
from ottla.record.header import HEADER_SIZE, MAGIC, BatchHeader, read_header
from ottla.storage.disk.filesystem import File

# The bytes read at once by a walk: several batches of the size of small appends.
WINDOW_BYTES = 16 * 1024
# The length field of a batch without records.
BATCH_LENGTH_MIN = HEADER_SIZE - 12


class BadHeader(Exception):
    """The bytes at `position` are no valid batch header."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(what)
        self.position = position
        self.what = what


def header_fault(header: BatchHeader, room: int, offset_min: int) -> str | None:
    """Return why `header` is not valid; None if it is.

    The batch must fit into `room` bytes, and its base offset be `offset_min` or later.
    """
    if header.magic != MAGIC:
        return f"magic is {header.magic}, not {MAGIC}"
    if header.batch_length < BATCH_LENGTH_MIN:
        return f"batch length {header.batch_length} is too small"
    if header.size > room:
        return f"a batch of {header.size} bytes, but only {room} bytes follow"
    if header.base_offset < offset_min or header.last_offset_delta < 0:
        return f"base offset {header.base_offset} after {offset_min - 1}"
    return None


def jump_fault(buffer: memoryview, position: int, header: BatchHeader) -> str | None:
    """Return why the batch at `position`, which follows missing offsets, is not valid; else None.

    Compaction leaves such gaps. No checksum covers the base offset, but the next batch reveals a
    flipped bit in it. Without a next batch the result is None.
    """
    following = position + header.size
    if following + HEADER_SIZE > len(buffer):
        return None
    next_one = read_header(buffer, following)
    if next_one.base_offset > header.last_offset:
        return None
    return f"base offset {header.base_offset}, and the next batch has {next_one.base_offset}"


def header_at(file: File, position: int, end: int, offset_min: int) -> BatchHeader:
    """Read the header at `position` of a file that ends at `end`. Raises BadHeader."""
    try:
        header = read_header(file.pread(HEADER_SIZE, position))
    except struct_error:
        raise BadHeader(position, f"fewer than {HEADER_SIZE} bytes follow") from None
    fault = header_fault(header, end - position, offset_min)
    if fault is not None:
        raise BadHeader(position, fault)
    return header


def walk(file: File, position: int, end: int, offset_min: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) from `position` to `end`. Raises BadHeader.

    Offsets must rise from `offset_min` on. The payloads of large batches are not read.
    """
    window = b""
    window_position = position
    while position < end:
        start = position - window_position
        if start + HEADER_SIZE > len(window):
            window = file.pread(min(WINDOW_BYTES, end - position), position)
            window_position, start = position, 0
        if len(window) - start < HEADER_SIZE:
            raise BadHeader(position, f"fewer than {HEADER_SIZE} bytes follow")
        header = read_header(window, start)
        fault = header_fault(header, end - position, offset_min)
        if fault is not None:
            raise BadHeader(position, fault)
        yield position, header
        position += header.size
        offset_min = header.last_offset + 1


ABORT = 0
COMMIT = 1
_KEY = Struct(">hh")
_VALUE = Struct(">hi")


def read_marker(payload: bytes | memoryview) -> tuple[bool, int] | None:
    """Return (is commit, coordinator epoch) of an end-transaction marker; None for other kinds.

    `payload` is the control batch after its header. Raises ValueError if it is too short.
    """
    try:
        _, position = read_zigzag(payload, 0)
        position += 1
        _, position = read_zigzag(payload, position)
        _, position = read_zigzag(payload, position)
        key_size, position = read_zigzag(payload, position)
        if key_size < _KEY.size:
            return None
        _, kind = _KEY.unpack_from(payload, position)
        if kind not in (ABORT, COMMIT):
            return None
        value_size, position = read_zigzag(payload, position + key_size)
        if value_size < _VALUE.size:
            raise ValueError("the value of an end-transaction marker is too short")
        _, coordinator_epoch = _VALUE.unpack_from(payload, position)
    except (IndexError, OverflowError) as error:
        raise ValueError("a control record is cut short") from error
    return kind == COMMIT, int(coordinator_epoch)
