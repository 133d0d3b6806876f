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
# The fields that the leader writes into a batch: base offset, length (unchanged), leader epoch.
PLACE: Final = Struct(">qii")
_INT32: Final = Struct(">i")
# Base offset, append time and log start offset, as they follow each other in an answer.
NUMBERS: Final = Struct(">qqq")
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

    __slots__ = (
        "base_sequence",
        "correlation_id",
        "last_offset_delta",
        "max_timestamp",
        "request_bytes",
        "size",
    )

    def __init__(
        self,
        correlation_id: i64,
        request_bytes: i64,
        size: i64,
        last_offset_delta: i64,
        max_timestamp: i64,
        base_sequence: i64,
    ) -> None:
        self.correlation_id = correlation_id
        # Without the request's size field.
        self.request_bytes = request_bytes
        # The bytes of the batch.
        self.size = size
        self.last_offset_delta = last_offset_delta
        self.max_timestamp = max_timestamp
        self.base_sequence = base_sequence


class BatchRun:
    """Consecutive usual batches of one producer that are in the receive buffer, in order.

    It has at least one batch. `producer_id` is -1 if the producer is not idempotent.
    """

    __slots__ = (
        "arrived",
        "batches",
        "first",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
        "request_bytes",
        "size",
    )

    def __init__(self, first: BatchHeader) -> None:
        self.first = first
        self.producer_id: i64 = first.producer_id
        self.producer_epoch: i64 = first.producer_epoch
        self.arrived: list[Arrived] = []
        # The batches themselves; they can be patched in place.
        self.batches: list[memoryview] = []
        # Sums over the batches, and over the requests with their size fields.
        self.size: i64 = 0
        self.record_count: i64 = 0
        self.request_bytes: i64 = 0
        self.max_timestamp: i64 = first.max_timestamp

    def __len__(self) -> int:
        return len(self.arrived)

    def add(self, arrived: Arrived, batch: memoryview) -> None:
        """Add the next batch."""
        self.arrived.append(arrived)
        self.batches.append(batch)
        self.size += arrived.size
        self.record_count += arrived.last_offset_delta + 1
        self.request_bytes += SIZE_BYTES + arrived.request_bytes
        if arrived.max_timestamp > self.max_timestamp:
            self.max_timestamp = arrived.max_timestamp

    # Hot: its loop once per batch.
    def place(self, base_offset: int, leader_epoch: int) -> None:
        """Write the leader epoch and the offsets from `base_offset` on into the batches."""
        pack = PLACE.pack_into
        for batch, arrived in zip(self.batches, self.arrived, strict=True):
            pack(batch, 0, base_offset, arrived.size - LENGTH_OVERHEAD, leader_epoch)
            base_offset += arrived.last_offset_delta + 1

    # Hot: its loop once per batch.
    def answers(
        self, template: bytes, numbers_position: int, base_offset: int, log_start_offset: int
    ) -> bytearray:
        """Return the answers to the requests, whose batches begin at `base_offset`.

        `template` is an answer, with base offset, append time and log start offset at
        `numbers_position`.
        """
        answers = bytearray(template * len(self.arrived))
        size: i64 = len(template)
        position: i64 = 0
        for arrived in self.arrived:
            _INT32.pack_into(answers, position + CORRELATION_POSITION, arrived.correlation_id)
            NUMBERS.pack_into(
                answers, position + numbers_position, base_offset, -1, log_start_offset
            )
            base_offset += arrived.last_offset_delta + 1
            position += size
        return answers


# Hot: once per receive, its loop once per request of a known producer.
def usual_run(
    received: memoryview,
    opening: bytes,
    prefix: bytes,
    is_flexible: bool,
    size_max: i64,
    newest_max: i64,
    count_max: i64,
) -> BatchRun | None:
    """Return the usual batches of the whole produce requests at the start of `received`.

    Each request follows its size. The run has at most `count_max` batches. It ends before the first
    request that does not begin with `opening` (API key and version), a correlation id and `prefix`,
    whose batch is not usual (see `usual_header`), or whose batch is not the next one of the same
    producer. Returns None if there is no such request.
    """
    run: BatchRun | None = None
    count: i64 = 0
    sequence: i64 = 0
    after_prefix: i64 = AFTER_CORRELATION_ID + len(prefix)
    end: i64 = len(received)
    position: i64 = 0
    while count < count_max and end - position > SIZE_BYTES + after_prefix:
        size: i64 = i64(read_i32_be(received[position : position + SIZE_BYTES].tobytes(), 0))
        position += SIZE_BYTES
        if size <= after_prefix or size > end - position:
            break
        request = received[position : position + size].tobytes()
        if not request.startswith(prefix, AFTER_CORRELATION_ID) or not request.startswith(opening):
            break
        start: i64 = _usual_start(request, after_prefix, is_flexible, size_max, newest_max)
        if start < 0:
            break
        base_sequence: i64 = i64(read_i32_be(request, start + _BASE_SEQUENCE_POSITION))
        if run is None:
            run = BatchRun(BatchHeader._make(_HEADER.unpack_from(request, start)))
        elif (
            read_i64_be(request, start + _PRODUCER_ID_POSITION) != run.producer_id
            or i64(read_i16_be(request, start + _PRODUCER_EPOCH_POSITION)) != run.producer_epoch
            or (run.producer_id >= 0 and base_sequence != sequence)
        ):
            break
        batch_end: i64 = size - TRAILER_SIZE if is_flexible else size
        batch_size: i64 = batch_end - start
        last_offset_delta: i64 = i64(read_i32_be(request, start + _LAST_OFFSET_DELTA_POSITION))
        max_timestamp: i64 = read_i64_be(request, start + _MAX_TIMESTAMP_POSITION)
        correlation_id: i64 = i64(read_i32_be(request, CORRELATION_POSITION))
        arrived = Arrived(
            correlation_id, size, batch_size, last_offset_delta, max_timestamp, base_sequence
        )
        run.add(arrived, received[position + start : position + batch_end])
        sequence = (base_sequence + last_offset_delta + 1) & _SEQUENCE_MASK
        position += size
        count += 1
    return run


# Hot: once per request of a known producer.
def usual_header(
    request: bytes, position: i64, is_flexible: bool, size_max: i64, newest_max: i64
) -> BatchHeader | None:
    """Return the header of the usual batch that ends a produce request; None for any other end.

    The records field, the last one, begins at `position` of `request`: the length of the batch,
    then the batch. Flexible versions add the tag counts (0) of three structs. `size_max` is in
    bytes, and `newest_max` is the greatest timestamp (ms) that needs no further check.
    """
    start: i64 = _usual_start(request, position, is_flexible, size_max, newest_max)
    return None if start < 0 else BatchHeader._make(_HEADER.unpack_from(request, start))


def _usual_start(
    request: bytes, position: i64, is_flexible: bool, size_max: i64, newest_max: i64
) -> i64:
    """Return where the usual batch begins that `usual_header` describes; -1 for any other end."""
    end: i64 = len(request)
    size: i64
    if is_flexible:
        end -= TRAILER_SIZE
        size, position = _compact_size(request, position, end)
        if position < 0 or request[end] or request[end + 1] or request[end + 2]:
            return -1
    else:
        if position < 0 or position > end - 4:
            return -1
        size = i64(read_i32_be(request, position))
        position += 4
    if size != end - position or size < HEADER_SIZE or size > size_max:
        return -1
    if not _is_usual(request, position, size, newest_max):
        return -1
    crc: i64 = i64(read_i32_be(request, position + CRC_POSITION))
    if checksum(memoryview(request)[position + ATTRIBUTES_POSITION : end]) != crc & _CRC_MASK:
        return -1
    record_count: i64 = i64(read_i32_be(request, position + _RECORD_COUNT_POSITION))
    try:
        check_part(request, position + HEADER_SIZE, end, record_count)
    except CorruptBatch:
        return -1
    return position


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
