"""Where a consumer goes on when its leader changes and the program moves it meanwhile."""

import asyncio

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
