"""The bytes of a producer snapshot: Kafka's `.snapshot` file, version 1.

Layout, big-endian: version (int16), CRC-32C of all that follows it (uint32), number of entries
(int32), then per entry 42 bytes: producer id (int64), epoch (int16), last sequence (int32),
last offset (int64), offset delta (int32), timestamp (int64), coordinator epoch (int32), first
offset of the open transaction or -1 (int64). Of a producer's batches only the last is kept.
"""

from collections.abc import Iterable
from struct import Struct

from ottla.base.crc32c import checksum
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.names import SNAPSHOT_SUFFIX, segment_file
from ottla.storage.producers.state import AppendedBatch, ProducerEntry

VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    """Encode the entries as a whole file."""
    parts = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else AppendedBatch(-1, -1, 0, -1)
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    body = _COUNT.pack(len(parts)) + b"".join(parts)
    return _HEAD.pack(VERSION, checksum(body)) + body


def decode(encoded: bytes) -> list[ProducerEntry]:
    """Read a file. Raises ValueError if its version, checksum or length is wrong."""
    start = _HEAD.size + _COUNT.size
    if len(encoded) < start:
        raise ValueError(f"{len(encoded)} bytes are too few for a snapshot")
    version, crc = _HEAD.unpack_from(encoded)
    if version != VERSION:
        raise ValueError(f"version {version} of the snapshot is unknown")
    body = memoryview(encoded)[_HEAD.size :]
    if checksum(body) != crc:
        raise ValueError("the snapshot's checksum is wrong")
    (count,) = _COUNT.unpack_from(body)
    if count < 0 or len(encoded) != start + count * _ENTRY.size:
        raise ValueError(f"a snapshot of {count} entries does not have {len(encoded)} bytes")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(memoryview(encoded)[start:])]


def _entry(
    producer_id: int,
    producer_epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    batches = []
    if last_offset >= 0:
        batches.append(AppendedBatch(last_sequence, last_offset, offset_delta, timestamp))
    return ProducerEntry(
        producer_id,
        producer_epoch,
        coordinator_epoch,
        timestamp,
        transaction_first_offset,
        batches,
    )


def newest_good(
    filesystem: FileSystem, folder: str, offsets: list[int], offset_max: int
) -> tuple[int, list[ProducerEntry]]:
    """Return (offset, entries) of the newest readable snapshot up to `offset_max`, else (-1, []).

    `offsets` are the offsets of the folder's snapshots. Raises OSError.
    """
    for offset in sorted(offsets, reverse=True):
        if offset <= offset_max:
            path = f"{folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
            try:
                return offset, decode(filesystem.read_bytes(path))
            except (ValueError, FileNotFoundError):
                continue
    return -1, []
