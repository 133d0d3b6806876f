"""Columns hold exactly the records of the batches, and the proof sees every part of them."""

import importlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.model.row_hash import batch_hash
from ottla.lake.model.schema import ROW_SCHEMA, header_name_bytes, header_name_text
from ottla.lake.rows import columns as column_module
from ottla.lake.rows.columns import ColumnBuilder
from ottla.record.builder import LOG_APPEND_TIME, BatchBuilder
from ottla.record.reader import batches

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

# Where a batch's header has the time of its first record.
_BASE_TIMESTAMP = 27

ROWS = st.lists(
    st.tuples(
        st.integers(-1, 2**45),
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3),
    ),
    min_size=1,
    max_size=40,
)


def encoded(rows: list[Row], base_offset: int, compression: int = 0, **kind: int) -> bytes:
    builder = BatchBuilder(compression, base_offset=base_offset, **kind)
    for row in rows:
        builder.append(*row)
    return bytes(builder.build())


def columns(buffer: bytes, start: int = 0, end: int = 1 << 40) -> pa.RecordBatch | None:
    builder = ColumnBuilder("flights", 2, start, end)
    for position, header in batches(buffer):
        builder.add(buffer, position, header)
    return builder.take()


@pytest.fixture(params=["in C", "in Arrow"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with both ways of gathering."""
    if request.param == "in C" and not column_module._in_c:
        pytest.skip("the loops in C were not compiled")
    monkeypatch.setattr(column_module, "_in_c", request.param == "in C")


@pytest.mark.parametrize("way", ["in C"], indirect=True)
def test_a_string_outside_the_payload_is_not_gathered() -> None:
    """The loop in C reads and writes nothing beyond its arrays, whatever the positions say."""
    in_c = importlib.import_module("ottla.lake._row_sums")
    starts, bounds = np.array([0, 9], np.int64), np.array([0, 8, 16], np.int32)
    with pytest.raises(ValueError, match="string 1 is not within the content"):
        in_c.gather(bytes(16), starts, bounds, bytearray(16))
    with pytest.raises(ValueError, match="string 1 is not within the content"):
        in_c.gather(bytes(32), starts, bounds, bytearray(15))
    with pytest.raises(ValueError, match="string 0 is not within the content"):
        in_c.gather(bytes(32), -starts - 1, bounds, bytearray(16))
    with pytest.raises(ValueError, match="string 1 is not within the content"):
        in_c.gather(bytes(32), starts, np.array([0, 8, 7], np.int32), bytearray(16))
    with pytest.raises(ValueError, match="other lengths"):
        in_c.gather(bytes(32), starts, bounds[:2], bytearray(16))


def as_rows(batch: pa.RecordBatch | None) -> list[dict[str, Any]]:
    return batch.to_pylist() if batch is not None else []


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from([0, 1, 2, 3, 4]))
def test_columns_equal_the_records(groups: list[list[Row]], compression: int) -> None:
    """Keys, values, nulls, headers, offsets and times come out as they went in, in any codec."""
    buffer, expected, offset = b"", [], 100
    for rows in groups:
        buffer += encoded(rows, offset, compression)
        for timestamp, key, value, headers in rows:
            named = [(header_name_text(name.encode()), held) for name, held in headers]
            expected.append((key, value, named, offset, timestamp))
            offset += 1

    batch = columns(buffer)
    assert batch is not None
    assert batch.schema == ROW_SCHEMA
    got = [
        (
            row["key"],
            row["value"],
            [(h["key"], h["value"]) for h in row["headers"]],
            row["offset"],
            stamp // 1000,
        )
        for row, stamp in zip(
            batch.to_pylist(), batch.column("timestamp").cast(pa.int64()).to_pylist(), strict=True
        )
    ]
    assert got == expected
    assert {row["topic"] for row in batch.to_pylist()} == {"flights"}
    assert {row["partition"] for row in batch.to_pylist()} == {2}


def test_buffers_and_codecs_mix() -> None:
    """Batches of several buffers, compressed or not, become one Arrow batch."""
    rows: list[Row] = [(5, b"key", b"v%d" % n, [("h", b"%d" % n)]) for n in range(4)]
    builder = ColumnBuilder("flights", 2, 0, 100)
    for base_offset, codec in ((0, 0), (4, 4), (8, 0), (12, 1)):
        buffer = encoded(rows, base_offset, codec) + encoded(rows, base_offset + 50, codec)
        for position, header in batches(buffer):
            builder.add(buffer, position, header)
    got = as_rows(builder.take())

    assert [row["offset"] for row in got] == [
        start + n for base in (0, 4, 8, 12) for start in (base, base + 50) for n in range(4)
    ]
    assert [row["value"] for row in got] == [b"v0", b"v1", b"v2", b"v3"] * 8
    assert [row["headers"][0]["value"] for row in got] == [b"0", b"1", b"2", b"3"] * 8


def test_range_cuts_within_a_batch() -> None:
    """A batch is fetched whole; only rows of the range come out, and are counted."""
    buffer = encoded([(5, b"k", b"%d" % n, []) for n in range(10)], 100)
    builder = ColumnBuilder("flights", 0, 103, 106)
    counts = [builder.add(buffer, position, header) for position, header in batches(buffer)]

    assert counts == [3]
    assert [row["offset"] for row in as_rows(builder.take())] == [103, 104, 105]
    assert builder.take() is None


def test_append_time_is_the_batchs() -> None:
    buffer = encoded([(5, None, b"a", []), (9, None, b"b", [])], 0, timestamp_type=LOG_APPEND_TIME)

    batch = columns(buffer)
    assert batch is not None
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [9000, 9000]
    assert batch.column("timestamp_type").to_pylist() == [1, 1]


def test_time_that_no_spark_timestamp_holds_is_named() -> None:
    """A rubbish timestamp ends the load with its place, and is not silently changed."""
    buffer = encoded([(2**62, None, b"a", [])], 7)

    with pytest.raises(OttlaError, match="flights-2 offset 7 has timestamp 4611686018427387904"):
        columns(buffer)


def nulled(buffer: bytes) -> pa.RecordBatch:
    builder = ColumnBuilder("flights", 2, 0, 100, null_bad_timestamps=True)
    for position, header in batches(buffer):
        builder.add(buffer, position, header)
    batch = builder.take()
    assert batch is not None
    return batch


def test_time_that_no_spark_timestamp_holds_may_become_null() -> None:
    """That record's alone; the rows before and behind it keep theirs."""
    buffer = encoded([(5, None, b"a", []), (2**62, None, b"b", []), (-1, None, b"c", [])], 7)
    with pytest.raises(OttlaError, match=r"offset 8 has timestamp .*--on-bad-timestamp null"):
        columns(buffer)
    batch = nulled(buffer)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [5000, None, -1000]
    assert batch.column("value").to_pylist() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("far", [-(2**62), 2**63 - 1, -(2**63)])
def test_no_time_is_too_far_to_be_found(far: int) -> None:
    """Nor is the one whose absolute value is no number of 64 bits."""
    buffer = bytearray(encoded([(5, None, b"a", [])], 7))
    buffer[_BASE_TIMESTAMP : _BASE_TIMESTAMP + 8] = far.to_bytes(8, "big", signed=True)
    with pytest.raises(OttlaError, match=f"offset 7 has timestamp {far} ms"):
        columns(bytes(buffer))
    assert nulled(bytes(buffer)).column("timestamp").to_pylist() == [None]


def test_a_null_time_counts_as_one() -> None:
    """In the proof it is a value of its own, wherever it stands and whatever lies under it."""
    null = nulled(encoded([(2**62, None, b"a", [])], 7))
    other = nulled(encoded([(2**61, None, b"a", [])], 7))
    times = [columns(encoded([(time, None, b"a", [])], 7)) for time in (-1, 0, 1)]
    assert batch_hash(null) == batch_hash(other)
    assert batch_hash(null) not in [batch_hash(time) for time in times if time is not None]


def test_rubbish_inside_a_batch_is_refused() -> None:
    """Records that do not add up to their batch are CORRUPT_MESSAGE, never wrong rows."""
    buffer = bytearray(encoded([(5, b"key", b"value", [])], 0))
    buffer[61] ^= 0x10

    with pytest.raises(OttlaError, match="CORRUPT_MESSAGE"):
        columns(bytes(buffer))


BASE: Row = (1000, b"key", b"value", [("h", b"1")])


@pytest.mark.parametrize(
    "changed",
    [
        (1001, b"key", b"value", [("h", b"1")]),
        (1000, None, b"value", [("h", b"1")]),
        (1000, b"", b"value", [("h", b"1")]),
        (1000, b"kex", b"value", [("h", b"1")]),
        (1000, b"key", None, [("h", b"1")]),
        (1000, b"key", b"valuf", [("h", b"1")]),
        (1000, b"keyv", b"alue", [("h", b"1")]),
        (1000, b"key", b"value", []),
        (1000, b"key", b"value", [("h", None)]),
        (1000, b"key", b"value", [("h", b"")]),
        (1000, b"key", b"value", [("", b"h1")]),
        (1000, b"key", b"value", [("h", b"1"), ("", None)]),
    ],
)
def test_every_part_of_a_row_counts(changed: Row) -> None:
    """A change of any column changes the hash; so does another offset or partition."""
    base, other = columns(encoded([BASE], 5)), columns(encoded([changed], 5))
    assert base is not None
    assert other is not None
    assert batch_hash(base) != batch_hash(other)


def test_offset_and_partition_count() -> None:
    here, later = columns(encoded([BASE], 5)), columns(encoded([BASE], 6))
    builder = ColumnBuilder("flights", 3, 0, 10)
    buffer = encoded([BASE], 5)
    for position, header in batches(buffer):
        builder.add(buffer, position, header)
    elsewhere = builder.take()
    assert here is not None
    assert later is not None
    assert elsewhere is not None
    assert len({batch_hash(b) for b in (here, later, elsewhere)}) == 3


def test_hash_survives_slices_and_order() -> None:
    """The hash of a table is the sum over its slices, in any order and of any size."""
    batch = columns(encoded([(n, b"k%d" % n, b"v" * n, []) for n in range(50)], 0))
    assert batch is not None
    halves = pa.Table.from_batches([batch.slice(20), batch.slice(0, 20)])

    assert batch_hash(halves) == batch_hash(batch)
    assert batch_hash(pa.Table.from_batches([batch])) == batch_hash(batch)


def renamed(name: bytes) -> bytes:
    """A batch of one record with one header of that name, four bytes long."""
    buffer = encoded([(5, None, b"a", [("HEAD", b"x")])], 7)
    assert buffer.count(b"HEAD") == 1
    return buffer.replace(b"HEAD", name)


def test_header_names_that_are_not_utf8_stay_apart() -> None:
    """Each has a text of its own, the proof tells them apart, and the bytes come back."""
    names = [b"\xff\xfea\x80", b"\xff\xfeb\x80", b"\x80\x80\x80\x80", b"ok\xc3\xa9", b"\xc3(\xc3("]
    found = [columns(renamed(name)) for name in names]
    texts = [row["headers"][0]["key"] for batch in found for row in as_rows(batch)]
    assert texts == [
        "\ufffdhex:fffe6180",
        "\ufffdhex:fffe6280",
        "\ufffdhex:80808080",
        "ok\u00e9",
        "\ufffdhex:c328c328",
    ]
    assert [header_name_bytes(text) for text in texts] == names
    assert len({batch_hash(batch) for batch in found if batch is not None}) == len(names)
