"""A batch with fewer records: the bytes of those that stay are kept, offsets and places with them.

Base offset, offset span, sequences and epochs stay as they were, so that a batch says what it said
to consumers, followers and producers' states. Records are numbered from the base offset, so theirs
need no change either, unless the batch gets a delete horizon: that takes the place of the base
timestamp, which the records count their times from (KIP-534).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from ottla.base.varint import read_zigzag
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


# Where a record that stays begins and ends in its section, and its time in ms.
Place = tuple[int, int, int]


@dataclass(slots=True)
class Sifted:
    """What of a batch's records stays. `tombstones`: whether deletions are among it."""

    places: list[Place]
    record_count: int
    tombstones: bool = False

    @property
    def is_whole(self) -> bool:
        return len(self.places) == self.record_count


# Says of a record whether it stays, by its key, offset and whether it has a value.
Stays = Callable[[bytes | None, int, bool], bool]


# Hot: once per batch, and the loop once per record.
def sift(header: BatchHeader, section: bytes, stays: Stays) -> Sifted:
    """Ask `stays` for each record of an uncompressed section. Raises CorruptBatch."""
    rows = walk(
        section, 0, len(section), header.record_count, header.base_offset, header.base_timestamp
    )
    sifted = Sifted([], header.record_count)
    places = sifted.places
    start = 0
    for offset, timestamp, key, key_size, _, value_size, headers, count in _ROW.iter_unpack(rows):
        end = headers if count == 0 else _headers_end(section, headers, count)
        if stays(section[key : key + key_size] if key_size >= 0 else None, offset, value_size >= 0):
            places.append((start, end, timestamp))
            if value_size < 0:
                sifted.tombstones = True
        start = end
    return sifted


def _headers_end(section: bytes, position: int, count: int) -> int:
    for _ in range(count):
        size, position = read_zigzag(section, position)
        size, position = read_zigzag(section, position + size)
        position += max(size, 0)
    return position


def smaller(
    header: BatchHeader,
    section: bytes,
    places: Sequence[Place],
    *,
    horizon_ms: int | None = None,
    level: int | None = None,
) -> bytearray:
    """The batch with the records at `places` of its section alone, at least one.

    `horizon_ms`, where given, becomes the delete horizon. Compressed as it was.
    """
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if horizon_ms is None:
        content = b"".join([section[start:end] for start, end, _ in places])
    else:
        base_timestamp, attributes = horizon_ms, attributes | DELETE_HORIZON_FLAG
        content = b"".join([_retimed(section, place, horizon_ms) for place in places])
    payload = compress(header.compression, content, level)
    max_timestamp = header.max_timestamp
    if not header.is_log_append_time:
        max_timestamp = max(timestamp for _, _, timestamp in places)
    return _batch(
        header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            record_count=len(places),
        ),
        payload,
    )


def header_alone(header: BatchHeader) -> bytearray:
    """The batch without any record, as Kafka keeps it for a producer's sequences."""
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


def _retimed(section: bytes, place: Place, base_timestamp: int) -> bytes:
    """A record's bytes with its time counted from another base."""
    start, end, timestamp = place
    _, position = read_zigzag(section, start)
    _, rest = read_zigzag(section, position + 1)
    body = section[position : position + 1] + _zigzag(timestamp - base_timestamp)
    body += section[rest:end]
    return _zigzag(len(body)) + body


def _zigzag(value: int) -> bytes:
    folded = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while folded > 0x7F:
        encoded.append(folded & 0x7F | 0x80)
        folded >>= 7
    encoded.append(folded)
    return bytes(encoded)
