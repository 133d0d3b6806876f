"""Laws of the three indexes: Kafka's bytes, and searches that equal a linear scan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.index.offset_index import OffsetIndex
from ottla.storage.index.time_index import TimeIndex
from ottla.storage.index.transaction_index import AbortedTransaction, TransactionIndex

entries = st.lists(
    st.tuples(st.integers(1, 50), st.integers(1, 5_000)), max_size=40
)  # Steps in offset and position.


def offset_index(steps: list[tuple[int, int]]) -> tuple[OffsetIndex, list[tuple[int, int]]]:
    index, pairs = OffsetIndex(100, 1 << 20), []
    offset, position = 100, 0
    for step, size in steps:
        offset, position = offset + step, position + size
        index.append(offset, position)
        pairs.append((offset, position))
    return index, pairs


def test_offset_index_has_kafkas_bytes() -> None:
    """Entries are relative offset and position, four big-endian bytes each."""
    index = OffsetIndex(1_000, 80)
    index.append(1_001, 4_200)
    index.append(1_258, 8_400)
    assert index.encode().hex() == "000000010000106800000102000020d0"
    assert index.encode(1).hex() == "00000102000020d0"


@given(entries, st.integers(90, 2_200))
def test_offset_index_search_equals_a_linear_scan(
    steps: list[tuple[int, int]], offset: int
) -> None:
    """floor and ceiling are what trying every entry gives."""
    index, pairs = offset_index(steps)
    below = [pair for pair in pairs if pair[0] <= offset]
    above = [place for last, place in pairs if last >= offset]
    assert index.floor(offset) == (below[-1] if below else (100, 0))
    assert index.ceiling(offset) == (above[0] if above else -1)


@given(entries, st.integers(0, 200_000))
def test_offset_index_truncates_by_position(steps: list[tuple[int, int]], position: int) -> None:
    """Entries of batches at or behind the cut are gone, all others stay."""
    index, pairs = offset_index(steps)
    index.truncate_to_position(position)
    kept = [pair for pair in pairs if pair[1] < position]
    assert OffsetIndex.decode(index.encode(), 100, 1 << 20, 1 << 20).encode() == index.encode()
    assert len(index) == len(kept)
    assert index.last() == (kept[-1] if kept else (100, 0))


@pytest.mark.parametrize(
    "encoded",
    [
        b"\0" * 7,
        bytes.fromhex("0000000500010000"),
        bytes.fromhex("ffffffff00000010"),
    ],
    ids=["no whole entry", "behind the end", "negative"],
)
def test_offset_index_that_cannot_be_is_refused(encoded: bytes) -> None:
    """A damaged index is not used."""
    with pytest.raises(ValueError, match=r"entr"):
        OffsetIndex.decode(encoded, 0, 1 << 20, 1 << 16)


def test_offset_index_made_larger_beforehand_is_read_without_its_zeros() -> None:
    """Kafka's active index is a file full of zeros behind its entries."""
    encoded = bytes.fromhex("0000000500000010") + bytes(80)
    assert len(OffsetIndex.decode(encoded, 0, 1 << 20, 1 << 16)) == 1


def test_time_index_has_kafkas_bytes() -> None:
    """Entries are a timestamp in eight bytes and a relative offset in four."""
    index = TimeIndex(1_000, 120)
    index.append(1_700_000_000_000, 1_003)
    index.append(1_699_999_999_999, 1_004)
    index.append(1_700_000_000_001, 1_005)
    assert index.encode().hex() == "0000018bcfe56800000000030000018bcfe5680100000005"
    assert TimeIndex.decode(index.encode() + bytes(24), 1_000, 120).encode() == index.encode()


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(-5, 70))
def test_time_index_search_equals_a_linear_scan(times: list[int], timestamp: int) -> None:
    """floor gives the last entry that is not later; entries are the rising maxima."""
    index, kept = TimeIndex(0, 1 << 20), []
    for offset, time in enumerate(times):
        index.append(time, offset)
        if not kept or time > kept[-1][0]:
            kept.append((time, offset))
    below = [pair for pair in kept if pair[0] <= timestamp]
    assert index.floor(timestamp) == (below[-1] if below else (-1, 0))
    assert TimeIndex.decode(index.encode(), 0, 1 << 20).last() == index.last()


@pytest.mark.parametrize("count", [0, 1, 2, 4_096, 4_097, 9_000])
def test_large_time_index_is_read_as_it_was_written(count: int) -> None:
    """Whole, or from any entry on; timestamps need more than four bytes."""
    base = 77
    index = TimeIndex(base, 1 << 20)
    for number in range(count):
        index.append(1_700_000_000_000 + number * 7, base + number // 2)
    encoded = index.encode()
    again = TimeIndex.decode(encoded + bytes(36), base, 1 << 20)
    assert again.timestamps.tolist() == [1_700_000_000_000 + n * 7 for n in range(count)]
    assert again.relative_offsets.tolist() == [number // 2 for number in range(count)]
    for first in (0, 1, count // 2, count):
        assert index.encode(first) == encoded[12 * first :]


@pytest.mark.parametrize("number", [0, 1, 4_095, 8_997, 8_998])
def test_an_entry_out_of_order_is_found_when_it_is_used(number: int) -> None:
    """And not sooner: comparing all entries when the file is read would hold the event loop."""
    index = TimeIndex(0, 1 << 20)
    for entry in range(9_000):
        index.append(1_000 + 2 * entry, entry)
    index.timestamps[number] = index.timestamps[number + 1]
    read = TimeIndex.decode(index.encode(), 0, 1 << 20)
    with pytest.raises(ValueError, match="out of order"):
        read.floor(1_000 + 2 * (number + 1))
    for entry in {10, 5_000, 8_990} - {number, number + 1}:
        assert read.floor(1_000 + 2 * entry) == (1_000 + 2 * entry, entry)


@pytest.mark.parametrize("encoded", [bytes(11), bytes.fromhex("ffffffffffffff0500000002")])
def test_time_index_that_cannot_be_is_refused(encoded: bytes) -> None:
    """Half entries and times before 1970 are damage."""
    with pytest.raises(ValueError, match=r"entr"):
        TimeIndex.decode(encoded, 0, 1 << 20)


def test_transaction_index_has_kafkas_bytes() -> None:
    """Entries are 34 bytes: version 0 and four offsets or ids of eight."""
    index = TransactionIndex([AbortedTransaction(7, 10, 20, 21)])
    assert (
        index.encode().hex() == "0000" + "0000000000000007"
        "000000000000000a"
        "0000000000000014"
        "0000000000000015"
    )
    assert TransactionIndex.decode(index.encode()).entries == index.entries


def test_transaction_index_finds_what_overlaps() -> None:
    """Offsets are inclusive; a last stable offset behind the range ends the search."""
    entries = [AbortedTransaction(1, 0, 10, 5), AbortedTransaction(2, 5, 20, 21)]
    index = TransactionIndex(list(entries))
    assert index.overlapping(0, 5) == ([entries[0]], True)
    assert index.overlapping(10, 15) == (entries, True)
    assert index.overlapping(11, 40) == ([entries[1]], False)
    assert index.overlapping(21, 40) == ([], False)
    index.truncate_to_offset(20)
    assert index.entries == [entries[0]]


@pytest.mark.parametrize("encoded", [bytes(33), b"\0\1" + bytes(32), bytes(68)])
def test_transaction_index_that_cannot_be_is_refused(encoded: bytes) -> None:
    """Half entries, another version and markers out of order are damage."""
    with pytest.raises(ValueError, match=r"entr"):
        TransactionIndex.decode(encoded)
