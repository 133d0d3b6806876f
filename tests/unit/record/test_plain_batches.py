"""Runs of plain batches, and surveys of a buffer, are what a look at each batch gives."""

from random import Random

import pytest

from ottla.record.builder import build_batch
from ottla.record.compression import Compression
from ottla.record.header import HEADER_SIZE, computed_crc, read_header, set_base_offset
from ottla.record.reader import CorruptBatch, Survey, batches, survey
from ottla.record.walk import Walk


def batch(base: int, count: int, attributes: int = 0) -> bytes:
    """A batch of so many records whose bits other than the codec are `attributes`."""
    values = [b"v" * (n % 7) or None for n in range(count)]
    made = build_batch([1000 + n for n in range(count)], None, values)
    content = bytearray(bytes(made))
    set_base_offset(content, 0, base)
    return bytes(content) if not attributes else marked(content, attributes)


def marked(content: bytearray, attributes: int) -> bytes:
    """The same with other attributes and the checksum of that."""

    content[21:23] = attributes.to_bytes(2, "big")
    content[17:21] = computed_crc(content, 0, len(content)).to_bytes(4, "big")
    return bytes(content)


def test_a_run_of_plain_batches_gives_the_rows_of_each() -> None:
    parts = [batch(5, 3), batch(8, 1), batch(9, 200)]
    buffer = b"".join(parts)
    run = Walk()
    assert run.add_plain(buffer, 0, 5, 1000, 10_000, 7) == len(buffer)
    single = Walk()
    for position, header in batches(buffer):
        single.add(
            buffer,
            position + HEADER_SIZE,
            position + header.size,
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            7,
        )
    assert run.rows() == single.rows()
    assert run.record_count == 204


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (batch(8, 2, Compression.LZ4), "compressed"),
        (batch(8, 2, 0x08), "log append time"),
        (batch(8, 2, 0x10), "of a transaction"),
        (batch(8, 2, 0x30), "control"),
        (batch(9, 2), "behind a gap"),
        (batch(7, 2), "given again"),
        (batch(8, 93), "ends behind the range"),
        (batch(8, 2)[:-1], "not whole"),
        (batch(8, 2)[:60], "no whole header"),
        (batch(8, 2)[:-1] + b"\x07", "of another checksum"),
        (batch(8, 2)[:16] + b"\x01" + batch(8, 2)[17:], "of another magic"),
        (batch(8, 2)[:8] + b"\xff\xff\xff\xff" + batch(8, 2)[12:], "of less than nothing"),
    ],
)
def test_a_run_ends_before_what_is_not_plain(second: bytes, why: str) -> None:
    first = batch(5, 3)
    walk = Walk()
    after = walk.add_plain(first + second, 0, 5, 100, 10_000)
    assert (after, walk.record_count) == (len(first), 3), why
    assert Walk().add_plain(second, 0, 8, 100, 10_000) == 0 or why in {
        "behind a gap",
        "given again",
    }


def test_a_run_ends_once_it_has_enough_rows() -> None:
    buffer = batch(0, 3) + batch(3, 3) + batch(6, 3)
    walk = Walk()
    after = walk.add_plain(buffer, 0, 0, 100, 4)
    assert walk.record_count == 6
    assert walk.add_plain(buffer, after, 6, 100, 100) == len(buffer)


def test_any_flipped_bit_ends_a_run_before_its_batch() -> None:
    """All that is not under the checksum is the offset, the length and the leader epoch."""
    chance = Random(3)
    first, second = batch(0, 3), batch(3, 20)
    for _ in range(400):
        spoilt = bytearray(first + second)
        at = chance.randrange(len(first), len(spoilt))
        if len(first) + 12 <= at < len(first) + 16:
            continue
        spoilt[at] ^= 1 << chance.randrange(8)
        walk = Walk()
        assert walk.add_plain(bytes(spoilt), 0, 0, 100, 10_000) == len(first)
        assert walk.record_count == 3


def test_a_survey_finds_the_batches_of_a_range() -> None:
    one, two, three = batch(5, 3), batch(8, 2), batch(10, 4)
    buffer = one + two + three
    behind = len(one), len(one) + len(two), len(buffer)
    assert survey(buffer, 0, 100) == Survey(0, behind[1], behind[2], False, False)
    assert survey(buffer, 8, 100) == Survey(behind[0], behind[1], behind[2], False, False)
    assert survey(buffer, 9, 10) == Survey(behind[0], behind[0], behind[1], False, True)
    assert survey(buffer + three[:-1], 7, 100) == Survey(0, behind[1], behind[2], False, False)
    assert survey(buffer, 14, 100) == Survey(behind[2], 0, behind[2], False, False)
    assert survey(buffer, 0, 5) == Survey(0, 0, 0, False, True)
    assert survey(b"", 0, 5) == Survey(0, 0, 0, False, False)


def test_a_survey_sees_data_of_transactions_in_its_range_only() -> None:
    buffer = batch(0, 2, 0x10) + batch(2, 1, 0x30) + batch(3, 2) + batch(5, 1, 0x10)
    assert survey(buffer, 0, 5).is_transactional
    assert not survey(buffer, 2, 5).is_transactional
    assert survey(buffer, 2, 6).is_transactional


def test_a_survey_refuses_what_cannot_be_a_batch() -> None:
    good = batch(0, 2)
    for at, content in ((16, b"\x01"), (8, b"\xff\xff\xff\xff"), (23, b"\xff"), (57, b"\x80")):
        bad = good[:at] + content + good[at + len(content) :]
        with pytest.raises(CorruptBatch):
            survey(good + bad, 0, 100)
    assert read_header(good).record_count == 2


def test_a_survey_refuses_batches_whose_offsets_do_not_rise() -> None:
    """A base offset has no checksum: what follows shows that it is wrong."""
    one, two, three = batch(0, 2), batch(2, 2), batch(4, 2)
    for jumped in (batch(34, 2), batch(0, 2)):
        with pytest.raises(CorruptBatch, match="is expected"):
            survey(one + jumped + three, 0, 100)
    assert survey(one + two + batch(9, 2), 0, 100).last == len(one) + len(two)
