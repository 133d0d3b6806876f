"""From bytes to batches to records.

Reads what a log or a fetch response holds: whole batches one after another, perhaps with an
incomplete one at the end. Does not decide which records a reader may see (aborted transactions).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from ottla.record.codec import Record, decode_records
from ottla.record.compression import (
    MAX_EXPANDED_BYTES,
    Buffer,
    Compression,
    CorruptBatch,
    decompress,
)
from ottla.record.header import (
    ATTRIBUTES_POSITION,
    CONTROL_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    computed_crc,
    read_header,
)

__all__ = ["CorruptBatch", "Survey", "batches", "check_batch", "records", "section", "survey"]

_OF_TRANSACTIONS: Final = TRANSACTIONAL_FLAG | CONTROL_FLAG


def batches(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each whole batch; stop at an incomplete one at the end.

    The first one is at `position`. Raises CorruptBatch where the bytes cannot be a batch of magic
    2. Checksums are not computed.
    """
    end = len(buffer)
    while end - position >= HEADER_SIZE:
        header = read_header(buffer, position)
        check_shape(header)
        if header.size > end - position:
            return
        yield position, header
        position += header.size


class Survey(NamedTuple):
    """Places in a buffer of whole batches: `start` and `end` of those meant, `last` is the last."""

    start: int
    last: int
    end: int
    is_transactional: bool  # Whether one of them is data of a transaction.
    is_cut: bool  # Whether a batch behind them begins at `after` or later.


def survey(buffer: bytes, first: i64, after: i64) -> Survey:
    """Look for the batches of `buffer` from the one that reaches offset `first` on, below `after`.

    `start` and `end` are equal where there is none, and behind what is below `first`. Raises
    CorruptBatch as `batches` does, and where offsets do not rise.
    """
    place: i64 = 0
    start: i64 = 0
    last: i64 = 0
    expected: i64 = 0
    size_all: i64 = len(buffer)
    is_transactional = is_cut = False
    while size_all - place >= HEADER_SIZE:
        size: i64 = i64(read_i32_be(buffer, place + 8)) + LENGTH_OVERHEAD
        last_delta: i64 = i64(read_i32_be(buffer, place + 23))
        if (
            buffer[place + MAGIC_POSITION] != MAGIC
            or size < HEADER_SIZE
            or last_delta < 0
            or read_i32_be(buffer, place + 57) < 0
        ):
            check_shape(read_header(buffer, place))
        base: i64 = read_i64_be(buffer, place)
        is_cut = base >= after
        if is_cut or size > size_all - place:
            break
        if base < expected:
            raise CorruptBatch(
                f"a batch has base offset {base} where {expected} or a higher one is expected"
            )
        expected = base + last_delta + 1
        if base + last_delta < first:
            start = place + size
        else:
            last = place
            attributes: i64 = i64(read_i16_be(buffer, place + ATTRIBUTES_POSITION))
            if attributes & _OF_TRANSACTIONS == TRANSACTIONAL_FLAG:
                is_transactional = True
        place += size
    return Survey(start, last, place, is_transactional, is_cut)


def check_shape(header: BatchHeader) -> None:
    """Raise CorruptBatch where the header contradicts itself."""
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch at offset {header.base_offset} has magic {header.magic}, not 2")
    if header.batch_length < HEADER_SIZE - LENGTH_OVERHEAD:
        raise CorruptBatch(
            f"batch at offset {header.base_offset} claims {header.batch_length} bytes"
        )
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise CorruptBatch(
            f"batch at offset {header.base_offset} claims {header.record_count} records "
            f"over {header.last_offset_delta} offsets"
        )


def check_batch(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raise CorruptBatch unless shape and checksum of the batch at `position` are right."""
    check_shape(header)
    if header.size > len(buffer) - position:
        raise CorruptBatch(f"batch at offset {header.base_offset} ends after the buffer")
    crc = computed_crc(buffer, position, header.size)
    if crc != header.crc:
        raise CorruptBatch(
            f"batch at offset {header.base_offset} has checksum {header.crc:#010x}, "
            f"its bytes give {crc:#010x}"
        )


def section(
    buffer: Buffer, position: int, header: BatchHeader, max_bytes: int = MAX_EXPANDED_BYTES
) -> bytes:
    """Return the records section of the batch at `position`, expanded to at most `max_bytes`."""
    payload = memoryview(buffer)[position + HEADER_SIZE : position + header.size]
    codec = header.compression
    if codec == Compression.NONE:
        # The codec walks bytes, not views: compiled, that is worth ten times the copy.
        return bytes(payload)
    if codec > Compression.ZSTD:
        raise CorruptBatch(f"batch at offset {header.base_offset} has unknown codec {codec}")
    return bytes(decompress(codec, payload, max_bytes))


def records(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    *,
    max_bytes: int = MAX_EXPANDED_BYTES,
    check_crc: bool = True,
) -> list[Record]:
    """Return the records of the batch at `position`.

    Timestamps are those of the records, or under LogAppendTime the batch's. Control records are
    returned like others: see `record.control`. Raises CorruptBatch.
    """
    if check_crc:
        check_batch(buffer, position, header)
    append_time = header.max_timestamp if header.is_log_append_time else None
    return decode_records(
        section(buffer, position, header, max_bytes),
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        append_time,
    )
