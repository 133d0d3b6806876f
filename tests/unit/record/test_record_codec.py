"""Round trips of records and batches, and the bounds of both forms of the codec."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.builder import (
    LOG_APPEND_TIME,
    BatchBuilder,
    are_bytes,
    build_batch,
    encode_records,
)
from ottla.record.codec import (
    CorruptBatch,
    Record,
    decode_records,
    read_varlong,
    varlong_size,
    write_varlong,
)
from ottla.record.header import LENGTH_OVERHEAD, read_header
from ottla.record.reader import batches, records
from ottla.record.walk import walk
from ottla.storage.log.log import PLACE

LONG_MAX = 2**63 - 1
maybe_bytes = st.none() | st.binary(max_size=300)
timestamps = st.integers(-1, 2**62)
headers = st.lists(st.tuples(st.text(max_size=10), maybe_bytes), max_size=4)
rows = st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes, headers), min_size=1, max_size=30)


@settings(deadline=None, max_examples=150)
@given(rows, st.integers(0, 4), st.integers(0, 2**62))
def test_a_batch_reads_back_as_it_was_built(rows, compression, base_offset) -> None:
    """All codecs, nulls, headers, timestamps that go back, any place in the log."""
    builder = BatchBuilder(compression, base_offset=base_offset)
    for row in rows:
        builder.append(*row)
    batch = builder.build()
    ((position, header),) = batches(batch)
    assert records(batch, position, header) == [
        Record(base_offset + index, *row) for index, row in enumerate(rows)
    ]
    assert header.record_count == len(rows)
    assert header.max_timestamp == max(row[0] for row in rows)
    assert header.base_timestamp == rows[0][0]
    if compression == 0:
        assert len(batch) == builder.size_estimate


@settings(deadline=None)
@given(st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes), min_size=1, max_size=50))
def test_the_bulk_way_writes_the_same_bytes(rows) -> None:
    """From parallel lists or one by one: one encoding."""
    builder = BatchBuilder(producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)
    for row in rows:
        builder.append(*row)
    columns = [list(column) for column in zip(*rows, strict=True)]
    bulk = build_batch(
        *columns, producer_id=7, producer_epoch=1, base_sequence=0, transactional=True
    )
    assert bulk == builder.build()
    single = BatchBuilder(producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)
    assert all(single.add(*row) for row in rows)
    head, payload = single.build_parts()
    assert head + payload == bulk
    assert encode_records(*columns) == bytes(bulk[61:])


def test_a_bulk_extension_continues_a_batch() -> None:
    """Offsets and timestamp deltas go on from what is there."""
    builder = BatchBuilder()
    builder.append(1000, b"a", None)
    builder.extend([900, 1100], None, [b"b", b"c"])
    builder.extend([], None, [])
    batch = builder.build()
    assert records(batch, 0, read_header(batch)) == [
        Record(0, 1000, b"a", None),
        Record(1, 900, None, b"b"),
        Record(2, 1100, None, b"c"),
    ]


@settings(deadline=None)
@given(
    st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes), min_size=1, max_size=50),
    st.integers(0, 2000),
)
def test_batches_are_filled_to_their_limit_and_no_further(rows, limit) -> None:
    """Cut from lists or put in one by one: as many as fit, but never none."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    start = 0
    while start < len(rows):
        builder, single = BatchBuilder(), BatchBuilder()
        builder.limit_bytes = single.limit_bytes = limit
        stop = builder.fill(*columns, start)
        taken = [single.add(*row) for row in rows[start : stop + 1]]
        assert taken == [True] * (stop - start) + [False] * (len(rows) > stop)
        batch = builder.build()
        assert batch == single.build()
        assert batch == build_batch(*(column[start:stop] for column in columns))
        assert len(batch) <= limit or stop == start + 1
        if stop < len(rows):
            builder.append(*rows[stop])
            assert builder.size_estimate > limit
        start = stop


def test_a_closed_builder_takes_nothing_more() -> None:
    """Not even a first record, which no limit refuses."""
    builder = BatchBuilder()
    builder.limit_bytes = 1
    assert builder.add(1, None, b"a")
    for closed in (builder, BatchBuilder()):
        closed.close()
        assert not closed.add(1, None, b"b")
        assert closed.fill([1], None, [b"b"]) == 0
    assert builder.record_count == 1


def test_a_fill_without_timestamps_gives_all_records_the_same() -> None:
    """Many records are sent at one time."""
    builder = BatchBuilder()
    assert builder.fill(None, None, [b"a", None], 0, 7) == 2
    batch = builder.build()
    assert records(batch, 0, read_header(batch)) == [
        Record(0, 7, None, b"a"),
        Record(1, 7, None, None),
    ]


def test_columns_of_bytes_are_told_from_others() -> None:
    """None among them is a tombstone."""
    assert are_bytes([b"a", None])
    assert are_bytes([])
    assert not are_bytes([b"a", "b"])
    assert not are_bytes([bytearray(b"a")])


def test_bulk_lists_of_unequal_length_are_refused() -> None:
    """A missing key would shift all that follow."""
    with pytest.raises(ValueError, match="equally long"):
        build_batch([1, 2], [b"k"], [b"a", b"b"])


def test_base_offset_and_leader_epoch_are_patched_without_a_new_checksum() -> None:
    """KIP-98: the checksum begins after both, so that a leader need not compute it again."""
    batch = build_batch([1], None, [b"v"])
    PLACE.pack_into(batch, 0, 2**62, len(batch) - LENGTH_OVERHEAD, 9)
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch) == (2**62, 9)
    assert records(batch, 0, header) == [Record(2**62, 1, None, b"v")]


def test_log_append_time_is_the_batch_timestamp() -> None:
    """KIP-32."""
    builder = BatchBuilder(timestamp_type=LOG_APPEND_TIME)
    builder.append(5, None, b"a")
    builder.append(6, None, b"b")
    batch = builder.build()
    assert [r.timestamp for r in records(batch, 0, read_header(batch))] == [6, 6]


def test_an_incomplete_last_batch_ends_the_reading() -> None:
    """A fetch may end within a batch (KIP-74); what is whole is read."""
    first = build_batch([1], None, [b"a"])
    second = build_batch([2], None, [b"b"])
    for cut in (0, 1, 60, 61, len(second) - 1):
        assert [p for p, _ in batches(first + second[:cut])] == [0]
    assert [p for p, _ in batches(first + second)] == [0, len(first)]


@given(st.integers(-(2**63), LONG_MAX))
def test_a_number_reads_back_and_its_size_is_known_before(value: int) -> None:
    """Zigzag over the whole of 64 bits, in both forms of the codec."""
    target = BytesWriter()
    write_varlong(target, value)
    encoded = target.getvalue()
    assert read_varlong(encoded, 0) == (value, len(encoded))
    assert varlong_size(value) == len(encoded)


def test_a_number_of_more_than_64_bits_is_corrupt() -> None:
    """Where the compiled form would wrap and the plain one grow, both refuse."""
    with pytest.raises(CorruptBatch, match="64 bits"):
        read_varlong(b"\xff" * 9 + b"\x02", 0)
    with pytest.raises(CorruptBatch, match="64 bits"):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


@pytest.mark.parametrize("timestamp", [-2, -(2**63), LONG_MAX, 2**63, 2**70])
def test_a_timestamp_that_no_record_may_carry_is_refused(timestamp: int) -> None:
    """Below -1, or beyond 64 bits; the same in both forms and on both ways in."""
    builder = BatchBuilder()
    for attempt in (
        lambda: builder.append(timestamp, None, b"v"),
        lambda: builder.add(timestamp, None, b"v"),
        lambda: builder.fill([timestamp], None, [b"v"]),
        lambda: builder.extend([5, timestamp], None, [b"v", b"w"]),
    ):
        with pytest.raises(OttlaError) as refused:
            attempt()
        assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert builder.record_count == 0


@pytest.mark.parametrize(
    ("base", "delta"), [(LONG_MAX, 1), (-1, -(2**63)), (1, LONG_MAX), (-(2**63), -1)]
)
def test_a_timestamp_that_leaves_64_bits_on_reading_is_corrupt(base: int, delta: int) -> None:
    """Base and delta come from a peer; their sum need not fit."""
    target = BytesWriter()
    write_varlong(target, delta)
    body = b"\x00" + target.getvalue() + b"\x00\x01\x01\x00"
    size = BytesWriter()
    write_varlong(size, len(body))
    section = size.getvalue() + body
    with pytest.raises(CorruptBatch, match="64 bits"):
        decode_records(section, 1, 0, base)
    with pytest.raises(CorruptBatch, match="64 bits"):
        walk(section, 0, len(section), 1, 0, base)
    assert decode_records(section, 1, 0, 0)[0].timestamp == delta


@pytest.mark.parametrize("base_offset", [-1, LONG_MAX, LONG_MAX - 2**31 + 2])
def test_a_base_offset_from_which_offsets_could_leave_64_bits_is_corrupt(base_offset: int) -> None:
    """An offset delta has 31 bits."""
    section = encode_records([1], None, [b"v"])
    with pytest.raises(CorruptBatch, match="cannot begin"):
        decode_records(section, 1, base_offset, 0)
    with pytest.raises(CorruptBatch, match="cannot begin"):
        walk(section, 0, len(section), 1, base_offset, 0)


def test_records_tell_themselves_apart() -> None:
    """Equality is by all parts."""
    record = Record(1, 2, b"k", None, [("h", None)])
    assert record == Record(1, 2, b"k", None, [("h", None)])
    assert record != Record(1, 2, b"k", None, [])
    assert record != "record"
    assert hash(Record(1, 2, b"k", b"v")) == hash(Record(1, 2, b"k", b"v", []))
    assert repr(record) == (
        "Record(offset=1, timestamp=2, key=b'k', value=None, headers=[('h', None)])"
    )


def test_records_can_be_copied_and_pickled() -> None:
    """A copy is equal to its original, in the compiled form too: records go to other processes."""
    record = Record(7, 1_700_000_000_000, b"k", None, [("h", b"x"), ("n", None)])
    assert pickle.loads(pickle.dumps(record)) == record
    assert copy.deepcopy(record) == record
