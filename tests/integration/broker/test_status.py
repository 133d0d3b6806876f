"""The numbers of a broker's parts, as a metrics endpoint or a console would read them."""

import asyncio
import dataclasses
from enum import Enum

from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.topic_plan import RequestedTopic
from ottla.storage.disk.memory_filesystem import MemoryFileSystem

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.dirs": "/data",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "offsets.topic.num.partitions": "4",
}


def run(scenario):
    async def main():
        broker = Broker(
            BrokerSettings(SETTINGS), filesystem=MemoryFileSystem(), store=MemoryStore()
        )
        await broker.start()
        try:
            await scenario(broker)
        finally:
            await broker.stop()

    asyncio.run(main())


def is_plain(value):
    """Whether a value can be kept, compared and sent: it holds on to nothing of the broker."""
    if dataclasses.is_dataclass(value):
        return all(is_plain(getattr(value, each.name)) for each in dataclasses.fields(value))
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, (*value, *value.values())))
    return value is None or isinstance(value, int | float | str | Enum)


def test_each_part_has_a_frozen_status_of_plain_numbers():
    async def scenario(broker):
        assert {"storage", "cluster", "replication", "cleaner", "serving"} <= broker.status().keys()
        for name, status in broker.status().items():
            assert dataclasses.is_dataclass(status), name
            assert type(status).__dataclass_params__.frozen, name
            assert is_plain(status), name

    run(scenario)


def test_two_looks_at_a_broker_at_rest_are_equal():
    """A status is a value: what happens later does not change it."""

    async def scenario(broker):
        before = broker.status()
        assert broker.status() == before
        await broker.parts.metadata.topics.create([RequestedTopic("t", 3, 1)])
        assert before["replication"].partitions == 0
        assert broker.status() != before

    run(scenario)


def test_the_numbers_are_those_of_what_happened():
    async def scenario(broker):
        await broker.parts.metadata.topics.create([RequestedTopic("t", 3, 1)])
        await broker.parts.metadata.topics.auto_create("__consumer_offsets")
        status = broker.status()
        assert (status["metadata"].topics, status["metadata"].partitions) == (2, 7)
        assert status["metadata"].without_leader == 0
        replication = status["replication"]
        assert (replication.partitions, replication.leaders) == (7, 7)
        assert (replication.offline, replication.under_replicated, replication.under_min_isr) == (
            0,
            0,
            0,
        )
        assert status["groups"].shards.led == 4
        assert status["controller"].is_active
        assert status["controller"].controller_id == broker.broker_id
        assert status["cluster"].is_registered
        assert status["cluster"].brokers == 1
        assert status["access"].has_authorizer
        assert status["serving"].is_serving
        assert status["serving"].connections == {"PLAINTEXT": 0}
        assert status["storage"].directories_online == 1

    run(scenario)


def test_a_partition_that_fails_is_counted_as_offline():
    async def scenario(broker):
        await broker.parts.metadata.topics.create([RequestedTopic("t", 2, 1)])
        broker.partitions.get("t", 0).fail("as the test wants it")
        assert broker.status()["replication"].offline == 1

    run(scenario)
