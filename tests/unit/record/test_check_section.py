"""A leader takes no records that a consumer could not read; both forms agree on which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record.builder import BatchBuilder, build_batch
from ottla.record.codec import decode_records
from ottla.record.compression import CorruptBatch
from ottla.record.header import HEADER_SIZE
from ottla.record.walk import check_section

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
