"""Produce requests by hand: for a generator that encodes once, and for batches nobody would send.

Layouts: record batch magic 2 (Kafka's documentation, "Record Batch"), Produce version 9 (KIP-482).
"""

import random
import struct
from dataclasses import dataclass

from crc32c import crc32c

_BATCH_HEADER_BYTES = 61
_CLIENT_ID = b"load"


def varint(value: int) -> bytes:
    """Zigzag, as records use."""
    return unsigned_varint((value << 1) ^ (value >> 63))


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, as flexible messages use."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string(text: bytes) -> bytes:
    """A string of a flexible message."""
    return unsigned_varint(len(text) + 1) + text


def record(index: int, value: bytes) -> bytes:
    """One record without key and headers, stamped like its batch."""
    body = b"\0\0" + varint(index) + varint(-1) + varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


@dataclass(frozen=True, slots=True)
class Batch:
    """An encoded record batch."""

    data: bytes
    records: int


def batch(size_bytes: int, record_bytes: int, now_ms: int, seed: int = 1) -> Batch:
    """As many records of random bytes as fit in a batch of `size_bytes`, and at least one."""
    chance = random.Random(seed)
    records: list[bytes] = []
    used = _BATCH_HEADER_BYTES
    while True:
        encoded = record(len(records), chance.randbytes(record_bytes))
        if records and used + len(encoded) > size_bytes:
            break
        records.append(encoded)
        used += len(encoded)
    return encode_batch(records, now_ms)


def encode_batch(
    records: list[bytes],
    now_ms: int,
    *,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    magic: int = 2,
) -> Batch:
    """The batch of these encoded records, its checksum right whatever else is wrong."""
    last = len(records) - 1
    checked = struct.pack(
        ">hiqqqhii",
        *(attributes, last, now_ms, now_ms, producer_id, producer_epoch, base_sequence),
        len(records),
    ) + b"".join(records)
    data = struct.pack(">qiibI", 0, 9 + len(checked), -1, magic, crc32c(checked)) + checked
    return Batch(data, len(records))


def produce_request(topic: str, partition: int, data: bytes, acks: int) -> bytes:
    """A whole frame of Produce version 9 with one batch for one partition."""
    header = struct.pack(">hhih", 0, 9, 7, len(_CLIENT_ID)) + _CLIENT_ID + b"\0"
    body = b"".join(
        (
            b"\0",  # no transactional id
            struct.pack(">hi", acks, 30_000),
            unsigned_varint(2) + compact_string(topic.encode()),
            unsigned_varint(2) + struct.pack(">i", partition),
            unsigned_varint(len(data) + 1) + data,
            b"\0\0\0",  # no tagged fields in partition, topic and request
        )
    )
    return struct.pack(">i", len(header) + len(body)) + header + body


def error_position(topic: str) -> int:
    """Where the error code of the only partition stands in the answer's frame."""
    return 4 + 4 + 1 + 1 + len(compact_string(topic.encode())) + 1 + 4


def produce_answer(frame: bytes, topic: str) -> tuple[int, int]:
    """Error code and base offset in the answer (without its size) to `produce_request`."""
    error, base_offset = struct.unpack_from(">hq", frame, error_position(topic) - 4)
    return error, base_offset
