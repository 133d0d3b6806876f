"""Where a consumer goes on when its leader changes and the program moves it meanwhile."""

import asyncio
from collections.abc import Callable

import pytest

from ottla.base.ids import TopicPartition
from ottla.client import Consumer, ConsumerOptions
from tests.integration.client.scripted_log import ScriptedLog, batch

PARTITION = TopicPartition("t", 0)
# The log began in leader epoch 0; the leader's is 1.
OLDER = {0: batch(0, b"0", b"1"), 1: batch(0, b"0", b"1"), 2: batch(2, b"2", b"3")}


@pytest.mark.parametrize("reset", ["earliest", "none"])
def test_a_seek_during_the_check_of_the_leader_epoch_is_kept(reset: str) -> None:
    """The epoch of records read before the seek says nothing of the new position (KIP-320)."""

    async def run() -> list[bytes | None]:
        log = ScriptedLog(dict(OLDER), end=4, leader_epoch=1, epoch_ends={0: 4})
        async with log.serve() as broker:
            options = ConsumerOptions(auto_offset_reset=reset, fetch_max_wait_ms=10)
            async with Consumer(broker.bootstrap, **options) as consumer:
                await consumer.assign([PARTITION])
                consumer.seek(PARTITION, 0)
                while not await consumer.poll(60):
                    pass
                # What was read is of an older epoch than the leader's: its end is asked for now.
                consumer.seek(PARTITION, 1)
                found: list[bytes | None] = []
                while len(found) < 3:
                    for records in (await consumer.poll(60)).by_partition:
                        found += [record.value for record in records]
        assert set(log.asked_epochs) == {0}
        return found

    assert asyncio.run(run()) == [b"1", b"2", b"3"]


class MovedLog(ScriptedLog):
    """Calls `move` once: when a fetch from 4 has come, before it is answered."""

    move: Callable[[], None] | None = None

    def answer(self, offset: int) -> bytes:
        move = self.move
        if offset == 4 and move is not None:
            self.move = None
            move()
        return super().answer(offset)


def test_an_answer_to_a_fetch_from_before_a_seek_is_not_returned() -> None:
    """It is still on its way when the program seeks; its records are later ones."""
    answers = {0: batch(0, b"0", b"1"), 2: batch(2, b"2", b"3"), 4: batch(4, b"4", b"5")}

    async def run() -> list[bytes | None]:
        log, moved = MovedLog(answers, end=6), asyncio.Event()
        async with log.serve() as broker:
            options = ConsumerOptions(auto_offset_reset="none", fetch_max_wait_ms=10)
            async with Consumer(broker.bootstrap, **options) as consumer:

                def move() -> None:
                    consumer.seek(PARTITION, 0)
                    moved.set()

                log.move = move
                await consumer.assign([PARTITION])
                consumer.seek(PARTITION, 4)
                await moved.wait()
                found: list[bytes | None] = []
                while b"5" not in found:
                    for records in (await consumer.poll(60)).by_partition:
                        found += [record.value for record in records]
        return found

    assert asyncio.run(run()) == [b"%d" % number for number in range(6)]


def test_an_error_of_a_fetch_from_before_a_seek_is_not_raised() -> None:
    """It came before the program moved on, and says nothing of the new position."""
    failed = asyncio.Event()

    class DamagedLog(ScriptedLog):
        def answer(self, offset: int) -> bytes:
            # After three damaged answers the consumer has an error for the next poll.
            if self.fetched_offsets.count(4) > 3:
                failed.set()
            return batch(0, b"0", b"1")

    async def run() -> list[bytes | None]:
        log = DamagedLog({}, end=6)
        async with log.serve() as broker:
            options = ConsumerOptions(
                auto_offset_reset="none", retry_backoff_ms=1, retry_backoff_max_ms=1
            )
            async with Consumer(broker.bootstrap, **options) as consumer:
                await consumer.assign([PARTITION])
                consumer.seek(PARTITION, 4)
                await failed.wait()
                consumer.seek(PARTITION, 0)
                return [record.value for record in await consumer.poll(60)]

    assert asyncio.run(run()) == [b"0", b"1"]
