"""Whatever happens to a batch's bytes, the answer is CorruptBatch or the truth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.record.builder import BatchBuilder, encode_records
from ottla.record.codec import CorruptBatch, decode_records
from ottla.record.header import read_header
from ottla.record.reader import batches, records
from ottla.record.walk import Walk, walk

# Base offset and leader epoch: the checksum leaves them out, so that a leader can set them.
PATCHABLE = {*range(8), *range(12, 16)}


def a_batch(compression: int) -> bytearray:
    builder = BatchBuilder(compression)
    for index in range(12):
        builder.append(1_000_000 + index, b"key %d" % index, b"value" * index, [("h", b"x")])
    builder.append(999, None, None)
    return builder.build()


@pytest.mark.parametrize("compression", range(5))
def test_every_flipped_bit_is_detected(compression: int) -> None:
    """Each bit of each byte, the two fields of the leader excepted: never read as records."""
    batch = a_batch(compression)
    for position in range(len(batch)):
        if position in PATCHABLE:
            continue
        for bit in range(8):
            batch[position] ^= 1 << bit
            try:
                found = [records(batch, start, header) for start, header in batches(batch)]
            except CorruptBatch:
                found = []
            assert found == [], f"bit {bit} of byte {position} went unnoticed"
            batch[position] ^= 1 << bit


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 4), st.data())
def test_damage_behind_a_checksum_that_holds_is_corrupt_or_reads(compression, data) -> None:
    """With check_crc off the decoders face the damage alone: CorruptBatch is all they raise."""
    batch = a_batch(compression)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(61, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    header = read_header(batch)
    try:
        found = records(batch, 0, header, check_crc=False, max_bytes=1 << 20)
    except CorruptBatch:
        return
    assert len(found) == header.record_count


def counts(section: bytes, count: int, base: int) -> tuple[int, int]:
    """Records that the decoder and the walk find; -1 where it is corrupt to them."""
    try:
        decoded = len(decode_records(section, count, base, base))
    except CorruptBatch:
        decoded = -1
    try:
        walked = len(walk(section, 0, len(section), count, base, base)) // 64
    except CorruptBatch:
        walked = -1
    return decoded, walked


@settings(deadline=None, max_examples=500)
@given(st.binary(max_size=200), st.integers(0, 40), st.integers(0, 2**62))
def test_rubbish_is_corrupt_to_decoder_and_walk_alike(rubbish, count, base) -> None:
    """Both read the same format; only the decoder looks into the names of headers."""
    decoded, walked = counts(rubbish, count, base)
    assert decoded in (walked, -1)
    assert walked in (count, -1)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_record_with_one_byte_changed_is_corrupt_to_both_or_neither(data) -> None:
    """Mutants of good records reach deeper than rubbish does."""
    section = bytearray(encode_records([5, 6, 7], [b"k", None, b""], [b"vv", b"", None]))
    section[data.draw(st.integers(0, len(section) - 1))] = data.draw(st.integers(0, 255))
    decoded, walked = counts(bytes(section), 3, 0)
    assert decoded == walked
    assert decoded in (3, -1)


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("0c0000fe010101", "ends within a record"),
        ("0e000000010100", "record of 7 bytes does not fit its batch"),
        ("feffffff0f000000010100", "record of 2147483647 bytes does not fit its batch"),
        ("fdffffff0f000000010100", "record of -2147483647 bytes"),
        ("0c00000001010000", "bytes follow the last record"),
        ("0e00000001010000", "do not add up"),
        ("0c0000010101000000", "offset delta is -1"),
        ("0c000000fe010100", "key of 127 bytes"),
        ("0c00000001fe0100", "value of 127 bytes"),
        ("0c0000000101fe01", "127 headers do not fit"),
        ("100000000101027e0000", "header's name of 63 bytes"),
        ("10000000010102ff0100", "header's name of -128 bytes"),
        ("140000000101020268fe01", "header's value of 127 bytes"),
        ("1000000001010202ff01", "not UTF-8"),
    ],
)
def test_each_way_to_lie_about_a_length_is_named(section: str, reason: str) -> None:
    """The error says which number was wrong."""
    with pytest.raises(CorruptBatch, match=reason):
        decode_records(bytes.fromhex(section), 1, 0, 0)


def test_a_count_that_cannot_be_is_refused_before_anything_is_allocated() -> None:
    """Two billion records in ten bytes."""
    with pytest.raises(CorruptBatch, match="cannot stand"):
        decode_records(bytes(10), 2**31 - 1, 0, 0)
    with pytest.raises(CorruptBatch, match="cannot stand"):
        walk(bytes(10), 0, 10, 2**31 - 1, 0, 0)


def test_a_walk_that_fails_leaves_the_rows_before_it() -> None:
    """One bad batch does not spoil the columns of the good ones."""
    good = encode_records([5, 6], None, [b"a", b"b"])
    rows = Walk()
    rows.add(good, 0, len(good), 2, 10, 5)
    before = rows.rows()
    with pytest.raises(CorruptBatch):
        rows.add(good, 0, len(good) - 1, 2, 12, 5)
    with pytest.raises(CorruptBatch):
        rows.add(good, 3, 2, 1, 12, 5)
    assert rows.rows() == before
    assert rows.record_count == 2
    assert memoryview(before).cast("q").tolist() == [
        *(10, 5, 5, -1, 6, 1, 8, 0),
        *(11, 6, 13, -1, 14, 1, 16, 0),
    ]
