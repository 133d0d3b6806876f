"""Builds a batch with fewer records; the kept records' bytes and offsets do not change.

Base offset, offset span, sequences and epochs stay, so that consumers, followers and producers'
states conclude the same from the batch as before. Record offsets are relative to the base offset,
so they need no change either. Only a delete horizon changes the records' bytes: it replaces the
base timestamp, to which the records' timestamps are relative (KIP-534).
"""

from struct import Struct

from ottla.base.varint import append_zigzag, read_zigzag
from ottla.record.compression import compress
from ottla.record.header import (
    COMPRESSION_MASK,
    CRC_POSITION,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    BatchHeader,
    computed_crc,
)
from ottla.record.walk import walk

NO_TIMESTAMP = -1

_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")
_ROW = Struct("<8q")


def smaller(
    header: BatchHeader,
    content: bytes,
    record_count: int,
    max_timestamp: int,
    *,
    horizon_ms: int | None = None,
    level: int | None = None,
) -> bytearray:
    """Build a batch from `content`, the bytes of its kept records (at least one).

    `horizon_ms`, if given, becomes the delete horizon. The compression type stays.
    """
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if horizon_ms is not None:
        content = _retimed(header, content, record_count, horizon_ms)
        base_timestamp, attributes = horizon_ms, attributes | DELETE_HORIZON_FLAG
    return _batch(
        header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=header.max_timestamp if header.is_log_append_time else max_timestamp,
            record_count=record_count,
        ),
        compress(header.compression, content, level),
    )


def header_alone(header: BatchHeader) -> bytearray:
    """Build the batch without records, as Kafka keeps it for a producer's sequences."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG)
    return _batch(
        header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b""
    )


def _batch(header: BatchHeader, payload: bytes | bytearray | memoryview) -> bytearray:
    size = HEADER_SIZE + len(payload)
    batch = bytearray(size)
    _HEADER.pack_into(batch, 0, *header._replace(batch_length=size - LENGTH_OVERHEAD))
    batch[HEADER_SIZE:] = payload
    _CRC.pack_into(batch, CRC_POSITION, computed_crc(batch, 0, size))
    return batch


def _retimed(header: BatchHeader, content: bytes, record_count: int, base_timestamp: int) -> bytes:
    """Return the records with timestamps relative to another base timestamp."""
    rows = walk(content, 0, len(content), record_count, header.base_offset, header.base_timestamp)
    retimed = bytearray()
    start = 0
    for _, timestamp, *_ in _ROW.iter_unpack(rows):
        size, position = read_zigzag(content, start)
        end = position + size
        _, rest = read_zigzag(content, position + 1)
        body = bytearray(content[position : position + 1])
        append_zigzag(body, timestamp - base_timestamp)
        body += content[rest:end]
        append_zigzag(retimed, len(body))
        retimed += body
        start = end
    return bytes(retimed)
