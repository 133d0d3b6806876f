"""Recognises usual batches in the bytes of produce requests, without decoding the requests.

A usual batch is a single uncompressed, well-formed batch with the producer's own timestamps, which
`validation.validate` would accept unchanged. Other batches are left to `validate`, which finds the
reason if one must be refused: nothing is refused here.
"""

from struct import Struct
from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ottla.base.crc32c import checksum
from ottla.record.compression import CorruptBatch
from ottla.record.header import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
)
from ottla.record.walk import check_part
from ottla.wire.frames import AFTER_CORRELATION_ID, CORRELATION_POSITION, SIZE_BYTES

# The tag counts at the end of a produce request: of partition, topic and request.
TRAILER_SIZE: Final = 3
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_HEADER: Final = Struct(">qiibIhiqqqhii")
_CRC_MASK: Final = 0xFFFFFFFF
_LENGTH_POSITION: Final = 8
_LAST_OFFSET_DELTA_POSITION: Final = 23
_BASE_TIMESTAMP_POSITION: Final = 27
_MAX_TIMESTAMP_POSITION: Final = 35
_PRODUCER_ID_POSITION: Final = 43
_PRODUCER_EPOCH_POSITION: Final = 51
_BASE_SEQUENCE_POSITION: Final = 53
_RECORD_COUNT_POSITION: Final = 57


class Arrived:
    """A usual batch in the receive buffer, and the request that contains it."""

    __slots__ = ("batch", "correlation_id", "header", "request_bytes")

    def __init__(
        self, correlation_id: int, batch: memoryview, header: BatchHeader, request_bytes: int
    ) -> None:
        self.correlation_id = correlation_id
        self.batch = batch
        self.header = header
        # Without the request's size field.
        self.request_bytes = request_bytes


# Hot: once per receive, its loop once per request of a known producer.
def usual_run(
    received: memoryview,
    opening: bytes,
    prefix: bytes,
    is_flexible: bool,
    size_max: i64,
    newest_max: i64,
    count_max: i64,
) -> list[Arrived]:
    """Return the usual batches of the whole produce requests at the start of `received`.

    Each request follows its size. The run has at most `count_max` batches. It ends before the first
    request that does not begin with `opening` (API key and version), a correlation id and `prefix`,
    whose batch is not usual (see `usual_header`), or whose batch is not the next one of the same
    producer.
    """
    run: list[Arrived] = []
    after_prefix: i64 = AFTER_CORRELATION_ID + len(prefix)
    end: i64 = len(received)
    position: i64 = 0
    while len(run) < count_max and end - position > SIZE_BYTES + after_prefix:
        size: i64 = i64(read_i32_be(received[position : position + SIZE_BYTES].tobytes(), 0))
        position += SIZE_BYTES
        if size <= after_prefix or size > end - position:
            break
        request = received[position : position + size].tobytes()
        if not request.startswith(prefix, AFTER_CORRELATION_ID) or not request.startswith(opening):
            break
        header = usual_header(request, after_prefix, is_flexible, size_max, newest_max)
        if header is None or (run and not _is_next(header, run[-1].header)):
            break
        position += size
        batch_end: i64 = position - TRAILER_SIZE if is_flexible else position
        batch_size: i64 = header.batch_length + LENGTH_OVERHEAD
        batch = received[batch_end - batch_size : batch_end]
        run.append(Arrived(read_i32_be(request, CORRELATION_POSITION), batch, header, size))
    return run


def _is_next(header: BatchHeader, before: BatchHeader) -> bool:
    """Return whether a batch continues the previous one, in sequence if it has a producer id."""
    producer_id: i64 = header.producer_id
    if producer_id < 0:
        return before.producer_id < 0
    expected: i64 = before.base_sequence + before.last_offset_delta + 1
    return (
        producer_id == before.producer_id
        and header.producer_epoch == before.producer_epoch
        and header.base_sequence == expected & _SEQUENCE_MASK
    )


# Hot: once per request of a known producer.
def usual_header(
    request: bytes, position: i64, is_flexible: bool, size_max: i64, newest_max: i64
) -> BatchHeader | None:
    """Return the header of the usual batch that ends a produce request; None for any other end.

    The records field, the last one, begins at `position` of `request`: the length of the batch,
    then the batch. Flexible versions add the tag counts (0) of three structs. `size_max` is in
    bytes, and `newest_max` is the greatest timestamp (ms) that needs no further check.
    """
    end: i64 = len(request)
    size: i64
    if is_flexible:
        end -= TRAILER_SIZE
        size, position = _compact_size(request, position, end)
        if position < 0 or request[end] or request[end + 1] or request[end + 2]:
            return None
    else:
        if position < 0 or position > end - 4:
            return None
        size = i64(read_i32_be(request, position))
        position += 4
    if size != end - position or size < HEADER_SIZE or size > size_max:
        return None
    if not _is_usual(request, position, size, newest_max):
        return None
    crc: i64 = i64(read_i32_be(request, position + CRC_POSITION))
    if checksum(memoryview(request)[position + ATTRIBUTES_POSITION : end]) != crc & _CRC_MASK:
        return None
    record_count: i64 = i64(read_i32_be(request, position + _RECORD_COUNT_POSITION))
    try:
        check_part(request, position + HEADER_SIZE, end, record_count)
    except CorruptBatch:
        return None
    return BatchHeader._make(_HEADER.unpack_from(request, position))


def _compact_size(request: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Return (length, position after it) of a compact field; the position is -1 if invalid."""
    value: i64 = 0
    shift: i64 = 0
    while 0 <= position < end and shift <= 28:
        byte: i64 = request[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value - 1, position
        shift += 7
    return -1, -1


def _is_usual(request: bytes, position: i64, size: i64, newest_max: i64) -> bool:
    """Return whether the header needs no further checks, apart from checksum and records."""
    length: i64 = i64(read_i32_be(request, position + _LENGTH_POSITION))
    magic: i64 = request[position + MAGIC_POSITION]
    attributes: i64 = i64(read_i16_be(request, position + ATTRIBUTES_POSITION))
    last_offset_delta: i64 = i64(read_i32_be(request, position + _LAST_OFFSET_DELTA_POSITION))
    record_count: i64 = i64(read_i32_be(request, position + _RECORD_COUNT_POSITION))
    oldest: i64 = read_i64_be(request, position + _BASE_TIMESTAMP_POSITION)
    newest: i64 = read_i64_be(request, position + _MAX_TIMESTAMP_POSITION)
    if (
        length + LENGTH_OVERHEAD != size
        or magic != MAGIC
        or attributes != 0
        or record_count <= 0
        or last_offset_delta != record_count - 1
        or newest > newest_max
        or newest < oldest
        or read_i64_be(request, position) != 0
    ):
        return False
    return read_i64_be(request, position + _PRODUCER_ID_POSITION) < 0 or (
        read_i16_be(request, position + _PRODUCER_EPOCH_POSITION) >= 0
        and read_i32_be(request, position + _BASE_SEQUENCE_POSITION) >= 0
    )
