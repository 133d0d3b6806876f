"""Batches for tests of the log: real headers and checksums, payloads that no test looks into."""

from struct import Struct

from ottla.base.crc32c import checksum
from ottla.record.header import BatchHeader, read_header

_HEADER = Struct(">qiibIhiqqqhii")


def batch(
    count: int = 1,
    *,
    payload: bytes = b"x" * 20,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = 1_000,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
) -> bytearray:
    """A batch of `count` records with a good checksum."""

    def head(crc: int) -> bytes:
        return _HEADER.pack(
            base_offset,
            49 + len(payload),
            leader_epoch,
            2,
            crc,
            attributes,
            count - 1,
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            sequence,
            count,
        )

    return bytearray(head(checksum(head(0)[21:] + payload)) + payload)


def parsed(encoded: bytearray) -> tuple[memoryview, BatchHeader]:
    """What a log's leader is given: the writable batch and its header."""
    return memoryview(encoded), read_header(encoded)


def marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = 1_000,
) -> bytearray:
    """An end-transaction marker: a control batch of one record."""
    key = b"\0\0\0\1" if commit else b"\0\0\0\0"
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    body = b"\0\0\0" + bytes([len(key) * 2]) + key + bytes([len(value) * 2]) + value + b"\0"
    return batch(
        payload=bytes([len(body) * 2]) + body,
        attributes=0x30,
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
