"""A log shows by itself that it was compacted once; a gap between two answers shows nothing."""

from collections.abc import Generator, Sequence

import pytest

from ottla.lake.model.plan import PartitionBounds, Range
from ottla.lake.source.cluster import Fetched
from ottla.lake.source.ledgers import was_compacted
from ottla.record.builder import build_batch


def data(base_offset: int, count: int) -> bytes:
    values: list[bytes | None] = [b"%d" % (base_offset + n) for n in range(count)]
    return bytes(build_batch([1000] * count, None, values, base_offset=base_offset))


# Where a header says how far its batch spans.
_LAST_OFFSET_DELTA = 23


class Log:
    """A leader that gives one answer for each of the segments; `hidden` is passed over there."""

    def __init__(self, *segments: Sequence[bytes], hidden: Sequence[int] = ()) -> None:
        self._segments = segments
        self._hidden = hidden

    def fetch(self, _wanted: Range) -> Generator[Fetched]:
        for segment in self._segments:
            yield Fetched(b"".join(segment), 0, ())

    def peek(self, _topic: str, _partition: int, offset: int) -> bytes:
        if offset in self._hidden:
            return data(offset, 1)
        found = [b for segment in self._segments for b in segment]
        bases = [int.from_bytes(b[:8], "big") for b in found]
        return next((b for base, b in zip(bases, found, strict=True) if base >= offset), b"")

    def end_offset(self, _topic: str, _partition: int) -> int:
        raise AssertionError("not asked for")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (Log(), False),
        (Log([data(0, 3), data(3, 3)], [data(6, 1)]), False),
        # Side by side in one answer.
        (Log([data(0, 3), data(4, 3)]), True),
        # Between two answers: Kafka passes over what is damaged.
        (Log([data(0, 3)], [data(4, 3)]), False),
        # At the log's start: nothing is there, asked for again.
        (Log([data(7, 3)]), True),
        # Something is there, which was passed over.
        (Log([data(7, 3)], hidden=[5]), False),
    ],
)
def test_the_log_is_the_witness(log: Log, expected: bool) -> None:
    """Whatever the topic's policy is today."""
    assert was_compacted(log, "t", 0, PartitionBounds(0, 10)) is expected


def test_a_damaged_batch_is_no_witness() -> None:
    """What its header claims to span is not believed before its checksum."""
    batch = bytearray(data(0, 3))
    batch[_LAST_OFFSET_DELTA + 3] ^= 8
    assert not was_compacted(Log([bytes(batch)]), "t", 0, PartitionBounds(0, 11))
