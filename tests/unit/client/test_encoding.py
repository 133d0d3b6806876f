"""A closed batch as bytes."""

from ottla.client.producer.encoded_batch import encode, restamp, split
from ottla.client.producer.queues import Batch
from ottla.record.header import computed_crc, read_header
from ottla.record.reader import records


def batch_of(*values: bytes, sequence: int = 5) -> Batch:
    """A finished batch of producer 9 in epoch 1; record 1 has a header."""
    batch = Batch("t", 0, (3, 0), 0, 0)
    for number, value in enumerate(values):
        headers = [("h", b"1")] if number == 1 else []
        batch.builder.append(1000 + number, None, value, headers)
    batch.finish()
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 9, 1, sequence
    return batch


def encoded(batch: Batch) -> bytearray:
    """What goes to the broker."""
    assert batch.head is not None
    return batch.head + batch.payload


def shown(batch: Batch) -> list[tuple[bytes | None, int, list[tuple[str, bytes | None]]]]:
    """Value, timestamp and headers of each record."""
    data = encoded(batch)
    return [(r.value, r.timestamp, r.headers) for r in records(data, 0, read_header(data))]


def test_encoding_keeps_headers_beside_their_records() -> None:
    """Headers come out where they went in, and the builder is given up."""
    batch = batch_of(b"a", b"b", b"c")
    encode(batch, 0, None)
    assert shown(batch) == [(b"a", 1000, []), (b"b", 1001, [("h", b"1")]), (b"c", 1002, [])]
    assert (batch.builder.record_count, batch.record_count) == (0, 3)


def test_an_encoded_batch_carries_its_producers_numbers() -> None:
    """They are given when it is sent first, after its records."""
    batch = batch_of(b"a")
    encode(batch, 0, None)
    header = read_header(encoded(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 5)


def test_restamping_changes_the_numbers_and_the_checksum_and_nothing_else() -> None:
    """A new epoch does not encode the records again (KIP-360)."""
    batch = batch_of(b"a")
    encode(batch, 0, None)
    before = bytes(encoded(batch))
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 10, 2, 0
    restamp(batch)
    after = encoded(batch)
    header = read_header(after)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (10, 2, 0)
    assert header.crc == computed_crc(after, 0, len(after))
    assert after[21:43] == before[21:43]
    assert after[57:] == before[57:]


def test_halves_share_the_order_and_the_sequences_of_the_whole() -> None:
    """Each record keeps its sequence, so that a broker still recognises a retry."""
    batch = batch_of(b"a", b"b", b"c", b"d", b"e", sequence=2**31 - 2)
    encode(batch, 4, None)
    first, second = split(batch)
    assert (first.order, second.order) == ((3, 0), (3, 2))
    assert (first.base_sequence, second.base_sequence) == (2**31 - 2, 0)
    assert (first.record_count, second.record_count) == (2, 3)
    encode(first, 0, None)
    encode(second, 0, None)
    assert shown(first) == [(b"a", 1000, []), (b"b", 1001, [("h", b"1")])]
    assert shown(second) == [(b"c", 1002, []), (b"d", 1003, []), (b"e", 1004, [])]
