"""Batches that Apache Kafka 4.3's own MemoryRecords wrote, frozen, read by ours."""

from pathlib import Path

import pytest

from ottla.record import codec
from ottla.record.codec import Record
from ottla.record.control import ControlType, EndTransactionMarker, build_marker, read_marker
from ottla.record.header import BatchHeader, read_header
from ottla.record.reader import batches, check_batch, records, section
from ottla.record.walk import walk

VECTORS = {
    name: bytes.fromhex(text)
    for name, text in (
        line.split()
        for line in Path(__file__).with_name("vectors").joinpath("kafka_4_3.txt").open()
    )
}
SMALL = [
    (1_700_000_000_000, b"k1", b"v1", []),
    (1_699_999_999_000, None, b"no key, earlier", []),
    (1_700_000_000_500, b"tombstone", None, []),
    (1_700_000_000_001, b"", b"", [("h", b"x"), ("n", None), ("h", b"")]),
]
BIG = (1_700_000_000_002, b"big", (b"ottla " * 6667)[:40_000], [])


def read(name: str) -> tuple[BatchHeader, list[Record]]:
    buffer = VECTORS[name]
    found = list(batches(buffer))
    assert [(position, header.size) for position, header in found] == [(0, len(buffer))]
    return found[0][1], records(buffer, 0, found[0][1])


def expected(base_offset: int, rows: list, timestamp: int | None = None) -> list[Record]:
    return [
        Record(base_offset + delta, row[0] if timestamp is None else timestamp, *row[1:])
        for delta, row in enumerate(rows)
    ]


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_of_each_codec_of_the_java_client_are_read(name: str) -> None:
    """Keys, nulls, headers, an earlier timestamp and a value over several blocks survive."""
    header, found = read(f"records_{name}")
    assert found == expected(7, [*SMALL, BIG])
    assert header.leader_epoch == 3
    assert header.max_timestamp == 1_700_000_000_500


def test_an_uncompressed_batch_of_the_java_client_is_read_field_by_field() -> None:
    """All thirteen fields of the header, literally."""
    header, found = read("records_none")
    assert header == BatchHeader(
        7, 117, 3, 2, 0x9CBCF743, 0, 3, 1_700_000_000_000, 1_700_000_000_500, -1, -1, -1, 4
    )
    assert found == expected(7, SMALL)


def test_an_idempotent_batch_tells_producer_and_sequence() -> None:
    """KIP-98: producer id, epoch and base sequence stand in the header."""
    header, _ = read("idempotent_none")
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 5, 17)
    assert header.last_sequence == 20
    assert not header.is_transactional


def test_a_sequence_wraps_from_its_greatest_value_to_zero() -> None:
    """2,147,483,645 and four records: the last has sequence 0."""
    header, found = read("transactional_zstd")
    assert header.is_transactional
    assert header.base_sequence == 2_147_483_645
    assert header.last_sequence == 0
    assert found == expected(100, SMALL)


def test_under_log_append_time_every_record_has_the_batch_timestamp() -> None:
    """KIP-32: the leader's time replaces those of the records, which stay in their bytes."""
    header, found = read("log_append_time_none")
    assert header.is_log_append_time
    assert found == expected(50, SMALL, header.max_timestamp)


@pytest.mark.parametrize(
    ("name", "offset", "marker"),
    [
        ("commit_marker", 9, EndTransactionMarker(ControlType.COMMIT, 12)),
        ("abort_marker", 10, EndTransactionMarker(ControlType.ABORT, 13)),
    ],
)
def test_markers_are_read_and_ours_are_the_same_bytes(
    name: str, offset: int, marker: EndTransactionMarker
) -> None:
    """KIP-98: a control batch of one record; only the leader epoch is stamped later."""
    header, found = read(name)
    assert header.is_control
    assert read_marker(found[0]) == marker
    ours = build_marker(
        marker,
        producer_id=4001,
        producer_epoch=6,
        timestamp=1_700_000_000_000,
        base_offset=offset,
    )
    theirs = VECTORS[name]
    assert ours[:12] + ours[16:] == theirs[:12] + theirs[16:]


@pytest.mark.parametrize("name", ["records_none", "records_snappy", "transactional_zstd"])
def test_the_walk_finds_the_same_parts_as_the_reader(name: str) -> None:
    """Positions, lengths, offsets and timestamps of each row lead to what `records` returns."""
    header, found = read(name)
    expanded = section(VECTORS[name], 0, header)
    rows = memoryview(
        walk(expanded, 0, len(expanded), len(found), header.base_offset, header.base_timestamp)
    ).cast("q")
    assert len(rows) == 8 * len(found)
    for index, record in enumerate(found):
        offset, timestamp, key, key_size, value, value_size, _, headers = rows[
            8 * index : 8 * index + 8
        ]
        assert (offset, timestamp) == (record.offset, record.timestamp)
        assert record.key == (None if key_size < 0 else expanded[key : key + key_size])
        assert record.value == (None if value_size < 0 else expanded[value : value + value_size])
        assert headers == len(record.headers)


@pytest.mark.parametrize("name", ["magic_0", "magic_1"])
def test_old_formats_are_no_batches(name: str) -> None:
    """Formats 0 and 1 are shorter than a header of format 2, and say so in their 17th byte."""
    assert list(batches(VECTORS[name])) == []
    padded = VECTORS[name] + bytes(61)
    with pytest.raises(codec.CorruptBatch, match=f"magic {name[-1]}"):
        list(batches(padded))


def test_the_checksum_of_each_vector_holds() -> None:
    """Ours is Kafka's CRC-32C, from the attributes to the end."""
    for name, buffer in VECTORS.items():
        if not name.startswith("magic"):
            check_batch(buffer, 0, read_header(buffer))
