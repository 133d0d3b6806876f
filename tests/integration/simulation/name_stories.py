"""What went wrong with a topic that was deleted and made again, and then all brokers died."""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import Admin, Consumer, Producer, TopicPartition
from ottla.testing.simulation.cluster import SimulatedCluster

from . import name_mutants as mutants
from .mutants import Mutate
from .stories import FAST

NAME = TopicPartition("again", 0)
# Longer than checkpoints are apart.
CHECKPOINT_S = 61.0
_DELETED = 8


async def _write(cluster: SimulatedCluster, count: int, what: bytes) -> None:
    async with Producer(cluster.bootstrap, **FAST) as producer:
        for number in range(count):
            await producer.send_and_wait(NAME.topic, b"%s %d" % (what, number))


async def _make(cluster: SimulatedCluster) -> None:
    """Make the topic; the name may still be taken by the one that is being deleted."""
    while True:
        try:
            await cluster.create_topic(NAME.topic)
        except OttlaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            await asyncio.sleep(0.1)
        else:
            return


async def _used_again(cluster: SimulatedCluster, count: int, *, power: bool) -> None:
    """The second topic's records are all there after the crash, and nothing else is."""
    await _make(cluster)
    await _write(cluster, 10, b"first")
    async with Admin(cluster.bootstrap) as admin:
        await admin.logs.delete_records({NAME: _DELETED})
        await cluster.advance(seconds=CHECKPOINT_S)
        await admin.topics.delete(NAME.topic)
    await _make(cluster)
    await _write(cluster, count, b"second")
    for broker in (1, 2, 3):
        await cluster.crash(broker, power=power)
    await asyncio.gather(*(cluster.start(broker) for broker in (1, 2, 3)))
    await _write(cluster, 1, b"third")
    expected = [*(b"second %d" % number for number in range(count)), b"third 0"]
    found: list[bytes | None] = []
    async with Consumer(cluster.bootstrap, request_timeout_ms=1_000) as consumer:
        await consumer.assign([NAME])
        assert (await consumer.beginning_offsets([NAME]))[NAME] == 0
        while len(found) < len(expected):
            for batch in (await consumer.poll(1)).by_partition:
                found += [record.value for record in batch.records]
    assert found == expected


async def fewer_records_than_the_first_topic_had(cluster: SimulatedCluster) -> None:
    """All brokers are killed inside the checkpoint interval: the partition is not offline."""
    await _used_again(cluster, 3, power=False)


async def more_records_than_the_first_topic_had(cluster: SimulatedCluster) -> None:
    """The same: none of the first records is below the log's start."""
    await _used_again(cluster, 15, power=False)


async def as_many_records_and_the_power_goes(cluster: SimulatedCluster) -> None:
    """The same by a power cut."""
    await _used_again(cluster, 10, power=True)


SCRIPTS: dict[Callable[..., Any], list[Mutate]] = {
    story: [mutants.checkpoints_name_what_is_deleted]
    for story in (
        fewer_records_than_the_first_topic_had,
        more_records_than_the_first_topic_had,
        as_many_records_and_the_power_goes,
    )
}
