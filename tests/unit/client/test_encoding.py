"""A closed batch as bytes."""

from ottla.client.encoding import encode, restamp, split
from ottla.client.queues import Batch
from ottla.record.header import computed_crc, read_header
from ottla.record.reader import records


def batch_of(*values: bytes, sequence: int = 5) -> Batch:
    """A closed batch of producer 9 in epoch 1; record 1 has a header."""
    batch = Batch("t", 0, (3, 0), 0, 0)
    batch.values = list(values)
    batch.keys = [None] * len(values)
    batch.timestamps = [1000 + number for number in range(len(values))]
    batch.headers = {1: [("h", b"1")]}
    batch.record_count = len(values)
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 9, 1, sequence
    return batch


def test_encoding_keeps_headers_beside_their_records() -> None:
    """Sparse headers come out where they went in, and the lists are given up."""
    batch = batch_of(b"a", b"b", b"c")
    encoded = encode(batch, 0, None)
    found = records(encoded, 0, read_header(encoded))
    assert [(r.value, r.timestamp, r.headers) for r in found] == [
        (b"a", 1000, []),
        (b"b", 1001, [("h", b"1")]),
        (b"c", 1002, []),
    ]
    assert (batch.values, batch.keys, batch.timestamps) == ([], [], [])


def test_restamping_changes_the_numbers_and_the_checksum_and_nothing_else() -> None:
    """A new epoch does not encode the records again (KIP-360)."""
    batch = batch_of(b"a")
    batch.encoded = encode(batch, 0, None)
    before = bytes(batch.encoded)
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 10, 2, 0
    restamp(batch)
    header = read_header(batch.encoded)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (10, 2, 0)
    assert header.crc == computed_crc(batch.encoded, 0, len(batch.encoded))
    assert batch.encoded[21:43] == before[21:43]
    assert batch.encoded[57:] == before[57:]


def test_halves_share_the_order_and_the_sequences_of_the_whole() -> None:
    """Each record keeps its sequence, so that a broker still recognises a retry."""
    batch = batch_of(b"a", b"b", b"c", b"d", b"e", sequence=2**31 - 2)
    batch.encoded = encode(batch, 4, None)
    first, second = split(batch)
    assert (first.values, second.values) == ([b"a", b"b"], [b"c", b"d", b"e"])
    assert (first.order, second.order) == ((3, 0), (3, 2))
    assert (first.base_sequence, second.base_sequence) == (2**31 - 2, 0)
    assert (first.headers, second.headers) == ({1: [("h", b"1")]}, {})
