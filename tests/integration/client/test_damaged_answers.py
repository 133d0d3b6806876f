"""Answers whose batches are not where they should be: base offsets have no checksum."""

import asyncio

import pytest

from ottla.base.ids import TopicPartition
from ottla.client import Consumer, ConsumerOptions
from ottla.client.ranges import RangeClient
from ottla.record.reader import CorruptBatch, batches
from tests.integration.client.scripted_log import ScriptedLog, batch

PARTITION = TopicPartition("t", 0)
FIRST, SECOND, THIRD = (batch(n, b"%d" % n, b"%d" % (n + 1)) for n in (0, 2, 4))
# What stands in the answer to a fetch from 0, and what of it is handed out before the damage.
DAMAGED = {
    "ends before the offset asked for": ({2: FIRST + SECOND + THIRD}, 2, []),
    "beyond the high watermark": ({0: FIRST + batch(66, b"2", b"3")}, 0, [b"0", b"1"]),
    "jumps back": ({0: FIRST + batch(0, b"2", b"3") + THIRD}, 0, [b"0", b"1"]),
    "jumps ahead": ({0: FIRST + batch(34, b"2", b"3") + THIRD}, 0, [b"0", b"1"]),
    "is longer than the answer": ({0: SECOND[:8] + b"\1" + SECOND[9:]}, 0, []),
}
each = pytest.mark.parametrize("case", DAMAGED.values(), ids=DAMAGED)
Case = tuple[dict[int, bytes], int, list[bytes]]


def behind_first(answers: dict[int, bytes]) -> dict[int, bytes]:
    """A log that is damaged: a fetch from 2 gives what stands behind the first batch."""
    return {2: answers.get(0, b"")[len(FIRST) :], **answers}


async def read(log: ScriptedLog, start: int, count: int) -> list[bytes | None]:
    """What a consumer hands out up to `count` records, or until it fails."""
    found: list[bytes | None] = []
    async with log.serve() as broker:
        options = ConsumerOptions(
            auto_offset_reset="none", retry_backoff_ms=1, retry_backoff_max_ms=1
        )
        async with Consumer(broker.bootstrap, **options) as consumer:
            await consumer.assign([PARTITION])
            consumer.seek(PARTITION, start)
            while len(found) < count:
                for records in (await consumer.poll(60)).by_partition:
                    found += [record.value for record in records]
    return found


@each
def test_consumer_refuses_a_batch_that_is_out_of_place(case: Case) -> None:
    """Records before it are handed out; then the error names partition, offset and remedy."""
    answers, start, good = case
    log = ScriptedLog(answers, end=50)
    assert asyncio.run(read(log, start, len(good))) == good

    answers = behind_first(answers)
    with pytest.raises(CorruptBatch) as refused:
        asyncio.run(read(ScriptedLog(answers, end=50), start, len(good) + 1))
    assert f"t-0 cannot be read at offset {start + len(good)}: " in refused.value.message
    assert "seek past it" in refused.value.message


@each
def test_consumer_asks_again_before_it_gives_up(case: Case) -> None:
    """Bits that flipped on the way, and not on the disk, are right the next time."""
    answers, start, good = case

    class MendedLog(ScriptedLog):
        def answer(self, offset: int) -> bytes:
            if self.fetched_offsets.count(offset) > 1 or (offset == 2 and good):
                return {0: FIRST, 2: SECOND, 4: THIRD}.get(offset, b"")
            return super().answer(offset)

    found = asyncio.run(read(MendedLog(answers, end=50), start, 6 - start))
    assert found == [b"0", b"1", b"2", b"3", b"4", b"5"][start:]


@each
def test_range_refuses_a_batch_that_is_out_of_place(case: Case) -> None:
    """What stands before it is yielded; then CorruptBatch, for the caller to judge."""
    answers, start, good = case
    answers = behind_first(answers)
    found: list[int] = []

    def read_range(bootstrap: str) -> None:
        with RangeClient(bootstrap, retry_timeout_ms=1_000) as client:
            for part in client.fetch_range("t", 0, start, 6):
                found.extend(header.base_offset for _, header in batches(part.batches))

    async def run() -> None:
        async with ScriptedLog(answers, end=50).serve() as broker:
            await asyncio.to_thread(read_range, broker.bootstrap)

    with pytest.raises(CorruptBatch):
        asyncio.run(run())
    assert found == ([0] if good else [])
