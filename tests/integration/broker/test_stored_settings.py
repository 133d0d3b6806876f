"""A broker starts, and can be mended, whatever an earlier version let be stored."""

import asyncio
import logging

import pytest

from ottla.coordination.interface.store import Create, Set
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata import paths
from ottla.metadata.image import ALL_BROKERS
from ottla.metadata.nodes import decode_configs, encode_configs
from ottla.metadata.topic_plan import RequestedTopic
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.cluster import Cluster
from tests.integration.broker.inprocess import run
from tests.integration.broker.test_handle_configs import BROKER, DELETE, SET, alter, value_of

MIN_ISR = "min.insync.replicas"


async def write(store, broker, **configs):
    """As an earlier version stored it."""
    path = paths.broker_config(broker)
    data = encode_configs({k.replace("_", "."): v for k, v in configs.items()})
    node = await store.get(path)
    await store.multi([Create(path, data) if node is None else Set(path, data, node.version)])


async def held(store, broker):
    node = await store.get(paths.broker_config(broker))
    return decode_configs("", node.data)


@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
@pytest.mark.parametrize("broker", [ALL_BROKERS, "1"])
def test_a_stored_limit_of_no_connection_is_ignored_and_can_be_removed(name, broker, caplog):
    """It is not described either; other changes are taken; the log tells it once."""
    store, filesystem = MemoryStore(), MemoryFileSystem()
    resource = "" if broker == ALL_BROKERS else broker

    async def look(_caller):
        await write(store, broker, **{name: "0", MIN_ISR: "1"})

    async def mend(caller):
        assert await value_of(caller, BROKER, "1", name) == str(2**31 - 1)
        change = ("log.retention.ms", SET, "5000")
        assert await alter(caller, BROKER, resource, change) == "NONE"
        assert (await held(store, broker))[name] == "0"
        assert await alter(caller, BROKER, resource, (name, DELETE, None)) == "NONE"
        assert name not in await held(store, broker)

    run(look, store=store, filesystem=filesystem)
    with caplog.at_level(logging.WARNING, "ottla"):
        run(mend, store=store, filesystem=filesystem)
    assert caplog.text.count(f"{name}=0, stored for ") == 1


@pytest.mark.parametrize("name", ["max.connections", "max.connection.creation.rate"])
@pytest.mark.parametrize("broker", ["", "1"])
def test_no_connection_at_all_cannot_be_set(name, broker):
    """Neither for all brokers nor for one: the change could not be taken back."""

    async def scenario(caller):
        assert await alter(caller, BROKER, broker, (name, SET, "0")) == "INVALID_REQUEST"
        assert await alter(caller, BROKER, broker, (name, SET, "1")) == "NONE"

    run(scenario)


def test_a_stored_value_that_cannot_be_read_leaves_all_others_described():
    """And those of names that are unknown today."""
    store, filesystem = MemoryStore(), MemoryFileSystem()

    async def before(_caller):
        await write(
            store, ALL_BROKERS, log_retention_ms="x", no_such="1", log_segment_bytes="2000000"
        )

    async def after(caller):
        assert await value_of(caller, BROKER, "", "log.segment.bytes") == "2000000"
        assert await value_of(caller, BROKER, "1", "log.segment.bytes") == "2000000"
        change = ("log.segment.bytes", SET, "3000000")
        assert await alter(caller, BROKER, "", change) == "NONE"
        assert await value_of(caller, BROKER, "1", "log.segment.bytes") == "3000000"

    run(before, store=store, filesystem=filesystem)
    run(after, store=store, filesystem=filesystem)


def test_the_clusters_min_isr_counts_and_not_what_was_stored_for_one_broker(caplog):
    """The broker's own number is ignored; a topic's own number counts."""

    async def scenario():
        async with Cluster(2, {MIN_ISR: "2"}) as cluster:
            one = cluster.brokers[1]
            new = [RequestedTopic("t", 1, 2), RequestedTopic("own", 1, 2, configs={MIN_ISR: "1"})]
            assert [each.error for each in await one.parts.metadata.topics.create(new)] == [
                None,
                None,
            ]
            await write(one.storage.store, "2", min_insync_replicas="1", log_retention_ms="5000")
            await cluster.kill(2)
            await cluster.restart(2)
            two = cluster.brokers[2]
            assert two.settings.integer(MIN_ISR) == 2
            assert two.settings.integer("log.retention.ms") == 5000
            assert two.partitions.get("t", 0).config.min_insync_replicas == 2
            assert two.partitions.get("own", 0).config.min_insync_replicas == 1

    with caplog.at_level(logging.WARNING, "ottla"):
        asyncio.run(scenario())
    assert "min.insync.replicas=1, stored for broker 2, is ignored" in caplog.text


def test_a_running_broker_ignores_a_min_isr_of_its_own():
    """Which an earlier version may store while brokers are upgraded one by one."""
    store, filesystem = MemoryStore(), MemoryFileSystem()

    async def scenario(caller):
        await write(store, "1", min_insync_replicas="1", log_retention_ms="5000")
        await caller.broker.parts.configs.configs.on_changed("brokers/1")
        assert await value_of(caller, BROKER, "1", "log.retention.ms") == "5000"
        assert await value_of(caller, BROKER, "1", MIN_ISR) == "2"
        assert await alter(caller, BROKER, "1", (MIN_ISR, DELETE, None)) == "NONE"
        assert await held(store, "1") == {"log.retention.ms": "5000"}

    run(scenario, {MIN_ISR: "2"}, store=store, filesystem=filesystem)
