"""Laws of the producer snapshot: Kafka's bytes, and no trust in damaged ones."""

import pytest

from ottla.base.crc32c import checksum
from ottla.storage.producers.snapshot import decode, encode
from ottla.storage.producers.state import AppendedBatch, ProducerEntry

BODY = bytes.fromhex(
    "00000001"  # one entry
    "0000000000000007"  # producer id
    "0002"  # epoch
    "00000009"  # last sequence
    "0000000000000064"  # last offset
    "00000003"  # offset delta
    "00000000000003e8"  # timestamp
    "00000005"  # coordinator epoch
    "000000000000005a"  # first offset of the open transaction
)


def entry() -> ProducerEntry:
    return ProducerEntry(
        7, 2, 5, 1_000, 90, [AppendedBatch(5, 96, 0, 900), AppendedBatch(9, 100, 3, 1_000)]
    )


def encoded(one: ProducerEntry) -> bytes:
    one.pack()
    return encode([one.packed])


def test_snapshot_has_kafkas_bytes() -> None:
    """Version 1, checksum of what follows it, and the last batch of each producer."""
    assert encoded(entry()) == b"\0\1" + checksum(BODY).to_bytes(4, "big") + BODY


def test_snapshot_is_read_as_it_was_written() -> None:
    """All but the older batches comes back."""
    [read] = decode(encoded(entry()))
    assert (read.producer_id, read.producer_epoch, read.coordinator_epoch) == (7, 2, 5)
    assert (read.last_timestamp, read.transaction_first_offset) == (1_000, 90)
    assert read.batches == [AppendedBatch(9, 100, 3, 1_000)]


def test_producer_without_batches_has_none_when_read() -> None:
    """A marker alone makes an entry without a last offset."""
    [read] = decode(encoded(ProducerEntry(7, 2)))
    assert (read.batches, read.last_sequence) == ([], -1)


@pytest.mark.parametrize("position", range(len(BODY) + 6))
def test_any_flipped_bit_is_found(position: int) -> None:
    """Version, checksum and contents are all guarded."""
    damaged = bytearray(encoded(entry()))
    damaged[position] ^= 0x10
    with pytest.raises(ValueError, match="snapshot"):
        decode(bytes(damaged))


@pytest.mark.parametrize("size", [0, 5, 9, 55])
def test_snapshot_cut_short_is_refused(size: int) -> None:
    """A torn file is no snapshot."""
    with pytest.raises(ValueError, match="snapshot"):
        decode(encoded(entry())[:size])
