"""Laws of compaction's look into a batch: the map is a dictionary that knows its bounds, and what
stays of a section are its records, byte for byte.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.builder import encode_records
from ottla.record.codec import decode_records
from ottla.record.compression import CorruptBatch
from ottla.record.key_map import ENTRY_BYTES, KeyMap, index_keys, sift

KEY = st.binary(max_size=6)
PAIRS = st.lists(
    st.tuples(st.one_of(st.none(), KEY), st.one_of(st.none(), st.binary(max_size=20))),
    min_size=1,
    max_size=30,
)


def section(pairs: list[tuple[bytes | None, bytes | None]]) -> bytes:
    times = [1_000 + 7 * number for number in range(len(pairs))]
    return encode_records(times, [key for key, _ in pairs], [value for _, value in pairs])


@given(st.lists(KEY, max_size=300))
@settings(deadline=None)
def test_the_map_is_a_dictionary(keys: list[bytes]) -> None:
    """The last offset of each key, -1 for others."""
    found = KeyMap(1_000)
    expected = {}
    for offset, key in enumerate(keys):
        assert found.put(key, offset)
        expected[key] = offset
    assert found.key_count == len(expected)
    assert {key: found.get(key) for key in expected} == expected
    assert found.get(b"not among them") == -1


def test_the_map_grows_in_small_steps() -> None:
    """24 bytes a key and a third more at most, and every key is found again."""
    found = KeyMap(1_000_000)
    for number in range(50_000):
        assert found.put(b"key%d" % number, number)
    assert 50_000 * ENTRY_BYTES < found.size_bytes < 50_000 * ENTRY_BYTES * 1.6
    assert all(found.get(b"key%d" % number) == number for number in range(0, 50_000, 97))


def test_a_full_map_takes_known_keys_only() -> None:
    """What is there may move on; a new key is refused, and changes nothing."""
    found = KeyMap(2)
    assert found.put(b"a", 1)
    assert found.put(b"b", 2)
    assert not found.put(b"c", 3)
    assert found.put(b"a", 4)
    assert (found.get(b"a"), found.get(b"b"), found.get(b"c"), found.key_count) == (4, 2, -1, 2)


@given(PAIRS, st.integers(0, 35), st.integers(0, 5), st.booleans())
@settings(deadline=None)
def test_what_stays_is_the_last_of_each_key(
    pairs: list[tuple[bytes | None, bytes | None]], known: int, first: int, stay: bool
) -> None:
    """Cut together, the runs are a section of exactly the records that stay."""
    content = section(pairs)
    keys = KeyMap(1_000)
    assert index_keys(content, len(pairs), 0, first, keys)
    keys.latest_offset = known - 1
    sifted = sift(content, len(pairs), 0, 1_000, keys, tombstones_stay=stay)
    last = {key: offset for offset, (key, _) in enumerate(pairs) if offset >= first}
    expected = [
        (offset, key, value)
        for offset, (key, value) in enumerate(pairs)
        if offset >= known
        or (key is not None and offset >= last.get(key, -1) and (value is not None or stay))
    ]
    runs = sifted.runs
    kept = b"".join(content[runs[n] : runs[n + 1]] for n in range(0, len(runs), 2))
    records = decode_records(kept, sifted.kept, 0, 1_000)
    assert [(r.offset, r.key, r.value) for r in records] == expected
    assert sifted.max_timestamp == max((r.timestamp for r in records), default=-1)
    assert sifted.tombstones == any(value is None for _, _, value in expected)


@given(st.binary(max_size=80), st.integers(1, 10))
def test_rubbish_is_refused_or_read_within_its_bounds(content: bytes, count: int) -> None:
    """Whatever bytes stand there, nothing but CorruptBatch comes of it."""
    keys = KeyMap(100)
    try:
        index_keys(content, count, 0, 0, keys)
        sifted = sift(content, count, 0, 1_000, keys, tombstones_stay=True)
    except CorruptBatch:
        return
    assert all(0 <= position <= len(content) for position in sifted.runs)


def test_a_section_that_ends_early_is_refused() -> None:
    """The header promised more records."""
    content = section([(b"a", b"1"), (b"b", b"2")])
    for end in range(len(content)):
        with pytest.raises(CorruptBatch):
            index_keys(content[:end], 2, 0, 0, KeyMap(10))
        with pytest.raises(CorruptBatch):
            sift(content[:end], 2, 0, 1_000, KeyMap(10), tombstones_stay=True)
