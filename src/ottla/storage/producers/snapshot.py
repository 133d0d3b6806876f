"""The bytes of a producer snapshot: Kafka's `.snapshot` file, version 1.

Layout, big-endian: version (int16), CRC-32C of all that follows it (uint32), number of entries
(int32), then per entry 42 bytes: producer id (int64), epoch (int16), last sequence (int32),
last offset (int64), offset delta (int32), timestamp (int64), coordinator epoch (int32), first
offset of the open transaction or -1 (int64). Of a producer's batches only the last is kept.
"""

from collections.abc import Sequence
from struct import Struct

from ottla.base.crc32c import checksum
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.names import SNAPSHOT_SUFFIX, segment_file
from ottla.storage.producers.state import PACKED, AppendedBatch, ProducerEntry

VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")


def encode(packed: Sequence[bytes]) -> bytes:
    """Encode the producers, each as `ProducerStates.packed` returns it, as a whole file."""
    body = _COUNT.pack(len(packed)) + b"".join(packed)
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
    if count < 0 or len(encoded) != start + count * PACKED.size:
        raise ValueError(f"a snapshot of {count} entries does not have {len(encoded)} bytes")
    entries = [_entry(*fields) for fields in PACKED.iter_unpack(memoryview(encoded)[start:])]
    for index, entry in enumerate(entries):
        entry.packed = encoded[start + index * PACKED.size : start + (index + 1) * PACKED.size]
    return entries


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
