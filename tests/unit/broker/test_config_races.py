"""Brokers that change the settings of one resource at the same time."""

import asyncio
import random

import pytest

from ottla.base.clock import SystemClock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.registration import prepare
from ottla.broker.configs.changes import change
from ottla.coordination.interface.store import Create, Delete
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata import paths
from ottla.metadata.nodes import decode_configs

PATH = paths.topic_config("t")


def play(scenario):
    """Run `scenario(one, two)`: the stores of two brokers, which answer after a while."""

    async def main():
        tree = MemoryTree()
        one, two = (
            MemoryStore(tree, name=name, faults=StoreFaults(random.Random(1), latency_ms=(1, 3)))
            for name in ("one", "two")
        )
        await prepare(one)
        await scenario(one, two)
        await one.close()
        await two.close()

    asyncio.run(asyncio.wait_for(main(), 120))


def setting(key, value):
    return lambda held: {**(held or {}), key: value}


async def held(store):
    return decode_configs(PATH, (await store.get(PATH)).data)


def test_changes_of_two_brokers_at_once_are_both_stored():
    """The one that was slower decides again, by what the faster one has stored."""

    async def scenario(one, two):
        clock = SystemClock()
        for _ in range(3):
            await asyncio.gather(
                *(change(one, PATH, setting(f"a{n}", "1"), clock) for n in range(4)),
                *(change(two, PATH, setting(f"b{n}", "2"), clock) for n in range(4)),
            )
            assert sorted(await held(two)) == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]
            await one.multi([Delete(PATH)])

    play(scenario)


def test_what_is_refused_or_unchanged_is_not_stored():
    """And the other brokers are not notified."""

    async def scenario(one, _two):
        clock = SystemClock()

        def refuse(_held):
            raise OttlaError(ErrorCode.INVALID_CONFIG, "no")

        with pytest.raises(OttlaError, match="no"):
            await change(one, PATH, refuse, clock)
        assert await change(one, PATH, lambda _held: None, clock) is None
        assert await one.get(PATH) is None
        assert await one.children(paths.CONFIG_CHANGES) == []

    play(scenario)


def test_settings_that_cannot_be_read_are_replaced():
    """By those that are set now: the remedy is to set them again."""

    async def scenario(one, _two):
        await one.multi([Create(PATH, b"rubbish")])
        assert await change(one, PATH, setting("a", "1"), SystemClock()) == {"a": "1"}
        assert await held(one) == {"a": "1"}

    play(scenario)
