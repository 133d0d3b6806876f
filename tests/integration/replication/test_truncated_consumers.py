"""S6: consumers that have read what an unclean election drops notice it, and where (KIP-320)."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client import Consumer, LogTruncated

from .scenes import get_ahead, play

PARTITION = TopicPartition("a", 0)


async def read_all(scene, reset):
    """A consumer that has read three records all have and three that only broker 1 has."""
    await get_ahead(scene)
    ports = [broker.port for broker in scene.cluster.brokers.values()]
    consumer = Consumer(
        [f"127.0.0.1:{port}" for port in ports],
        auto_offset_reset=reset,
        fetch_max_wait_ms=100,
    )
    await consumer.assign([PARTITION])
    consumer.seek(PARTITION, 0)
    assert await poll(consumer, 6) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    return consumer


async def elect_the_other(scene, count):
    """Broker 2 leads, which has three records of six, and writes `count` of its own."""
    await scene.cluster.kill(1)
    await scene.cluster.restart(2)
    await scene.cluster.until(lambda: scene.partition(2, "a").leader is not None)
    for number in range(count):
        assert (await scene.write(2, "a", b"new%d" % number)).error_code == ErrorCode.NONE


async def poll(consumer, count):
    found = []
    async with asyncio.timeout(120):
        while len(found) < count:
            for told in (await consumer.poll(0.5)).by_partition:
                found += [record.value for record in told.records]
    return found


@pytest.mark.parametrize("count", [0, 2, 5], ids=["shorter", "nearly as long", "longer"])
def test_consumer_without_a_rule_is_told_where_the_logs_part(count):
    """However long the other log is by now, nothing of it is taken for what comes next."""

    async def scenario(scene):
        consumer = await read_all(scene, "none")
        await elect_the_other(scene, count)
        with pytest.raises(LogTruncated) as told:
            await poll(consumer, 1)
        assert told.value.offset == 3
        consumer.seek(PARTITION, told.value.offset)
        assert (await scene.write(2, "a", b"last")).error_code == ErrorCode.NONE
        news = [b"new%d" % number for number in range(count)]
        assert await poll(consumer, count + 1) == [*news, b"last"]
        await consumer.close()

    play(scenario)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_consumer_with_a_rule_goes_on_where_the_logs_part(reset, caplog):
    """It reads all that is new to it, once, and says in the log what it had read in vain."""

    async def scenario(scene):
        consumer = await read_all(scene, reset)
        await elect_the_other(scene, 5)
        assert await poll(consumer, 5) == [b"new0", b"new1", b"new2", b"new3", b"new4"]
        assert await consumer.position(PARTITION) == 8
        assert "offsets 3 to 5 were read and are not in its log any more" in caplog.text
        await consumer.close()

    play(scenario)


def test_consumer_is_not_disturbed_by_a_clean_election():
    """A new leader that has all that was read is read on from."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        for number in range(3):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        port = scene.cluster.brokers[3].port
        consumer = Consumer(f"127.0.0.1:{port}", auto_offset_reset="none")
        await consumer.assign([PARTITION])
        consumer.seek(PARTITION, 0)
        assert await poll(consumer, 3) == [b"0", b"1", b"2"]
        await scene.cluster.kill(1)
        await scene.cluster.until(lambda: scene.partition(2, "a").leader is not None)
        assert (await scene.write(2, "a", b"3")).error_code == ErrorCode.NONE
        assert await poll(consumer, 1) == [b"3"]
        await consumer.close()

    play(scenario)
