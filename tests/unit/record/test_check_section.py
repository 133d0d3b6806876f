"""A leader takes no records that a consumer could not read; both forms agree on which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record.builder import BatchBuilder, build_batch
from ottla.record.codec import decode_records
from ottla.record.compression import CorruptBatch
from ottla.record.header import HEADER_SIZE
from ottla.record.walk import check_section, first_since

RECORDS = st.lists(
    st.tuples(
        st.integers(0, 2**40),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=3),
    ),
    min_size=1,
    max_size=100,
)


def section_of(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
) -> bytes:
    builder = BatchBuilder()
    for record in records:
        builder.append(*record)
    return bytes(builder.build()[HEADER_SIZE:])


@given(RECORDS)
def test_well_formed_records_pass(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
) -> None:
    check_section(section_of(records), len(records))


@given(RECORDS, st.data())
def test_whatever_passes_can_be_read(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    data: st.DataObject,
) -> None:
    """Any byte changed: either it is refused, or a reader gets that many records out of it."""
    section = bytearray(section_of(records))
    position = data.draw(st.integers(0, len(section) - 1))
    section[position] ^= data.draw(st.integers(1, 255))
    try:
        check_section(bytes(section), len(records))
    except CorruptBatch:
        return
    told = ""
    try:
        found = decode_records(bytes(section), len(records), 0, 0)
    except CorruptBatch as error:
        told = error.message
    # The timestamp and the encoding of a header's name are not judged here.
    if "timestamp" not in told and "UTF-8" not in told:
        assert [record.offset for record in found] == list(range(len(records)))


@pytest.mark.parametrize("count", [0, 1, 3, -1, 1 << 40])
def test_wrong_count_is_refused(count: int) -> None:
    section = bytes(build_batch([0, 0], None, [b"a", b"b"])[HEADER_SIZE:])

    with pytest.raises(CorruptBatch):
        check_section(section, count)


def test_offsets_out_of_order_are_refused() -> None:
    one = bytes(build_batch([0], None, [b"a"])[HEADER_SIZE:])

    with pytest.raises(CorruptBatch, match="record 1 of the batch has offset 0"):
        check_section(one + one, 2)


@given(RECORDS, st.integers(-1, 2**40), st.integers(-2, 101))
def test_the_first_record_since_a_time_is_that_of_a_linear_scan(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    timestamp: int,
    delta_min: int,
) -> None:
    """By offset, without an object for each record; -1 where there is none."""
    base = records[0][0]
    expected = [
        (record[0], delta)
        for delta, record in enumerate(records)
        if record[0] >= timestamp and delta >= delta_min
    ]
    found = first_since(section_of(records), len(records), base, timestamp, delta_min)
    assert found == (expected[0] if expected else (-1, -1))


@pytest.mark.parametrize("cut", [1, 3])
def test_no_record_is_found_in_a_section_that_ends_within_one(cut: int) -> None:
    section = bytes(build_batch([0, 0], None, [b"a", b"b"])[HEADER_SIZE:])

    with pytest.raises(CorruptBatch):
        first_since(section[:-cut], 2, 0, 1, 0)
    with pytest.raises(CorruptBatch):
        first_since(section, 1 << 40, 0, 1, 0)
