"""Runs of plain batches are what a look at each batch gives."""

from random import Random

import pytest

from ottla.record.builder import build_batch
from ottla.record.compression import Compression
from ottla.record.header import HEADER_SIZE, computed_crc
from ottla.record.reader import batches
from ottla.record.walk import Walk


def batch(base: int, count: int, attributes: int = 0) -> bytes:
    """A batch of so many records whose bits other than the codec are `attributes`."""
    values = [b"v" * (n % 7) or None for n in range(count)]
    made = build_batch([1000 + n for n in range(count)], None, values)
    content = bytearray(bytes(made))
    content[:8] = base.to_bytes(8, "big")
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
