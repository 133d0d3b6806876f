"""The face for users: their own programs on a cluster whose time and troubles they decide."""

import asyncio

import pytest

import ottla.testing
from ottla.base.errors import OttlaError
from ottla.client import Consumer, Producer, ProducerOptions, TopicPartition

FAST = ProducerOptions(request_timeout_ms=1_000, retry_backoff_ms=20)


async def values(bootstrap: list[str], topic: str, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    async with Consumer(bootstrap, request_timeout_ms=1_000) as consumer:
        await consumer.assign([TopicPartition(topic, 0)])
        while len(found) < count:
            for records in (await consumer.poll(1)).by_partition:
                found += [record.value for record in records.records]
    return found


@ottla.testing.simulated(seed=7)
async def test_acknowledged_record_survives_a_power_cut() -> None:
    async with ottla.testing.simulate() as cluster:
        await cluster.create_topic("orders")
        async with Producer(cluster.bootstrap, **FAST) as producer:
            await producer.send_and_wait("orders", b"one")
            await cluster.crash(1, power=True)
            await cluster.start(1)
            await producer.send_and_wait("orders", b"two")
        assert await values(cluster.bootstrap, "orders", 2) == [b"one", b"two"]


@ottla.testing.simulated(seed=8)
async def test_week_takes_no_time_and_retention_sees_it() -> None:
    """After eight days what a topic keeps for seven is gone."""
    async with ottla.testing.simulate() as cluster:
        settings = {"retention.ms": str(7 * 86_400_000), "segment.ms": "3600000"}
        await cluster.create_topic("orders", settings=settings)
        async with Producer(cluster.bootstrap, **FAST) as producer:
            await producer.send_and_wait("orders", b"old")
            await cluster.advance(days=8)
            await producer.send_and_wait("orders", b"new")
        await cluster.advance(minutes=10)
        partition = TopicPartition("orders", 0)
        async with Consumer(cluster.bootstrap) as consumer:
            begins = await consumer.beginning_offsets([partition])
        assert begins == {partition: 1}


@ottla.testing.simulated(seed=9)
async def test_partition_between_clients_and_broker_holds_records_back_until_it_heals() -> None:
    async with ottla.testing.simulate() as cluster:
        await cluster.create_topic("orders")
        async with Producer(cluster.bootstrap, **FAST) as producer:
            await producer.send_and_wait("orders", b"one")
            cluster.partition("clients", 1)
            sending = asyncio.ensure_future(producer.send_and_wait("orders", b"two"))
            await cluster.advance(seconds=10)
            assert not sending.done()
            cluster.heal()
            await sending
        assert await values(cluster.bootstrap, "orders", 2) == [b"one", b"two"]


@ottla.testing.simulated(seed=10)
async def test_broker_that_stands_still_answers_when_it_goes_on() -> None:
    async with ottla.testing.simulate() as cluster:
        await cluster.create_topic("orders")
        async with Producer(cluster.bootstrap) as producer:
            cluster.pause(1)
            sending = asyncio.ensure_future(producer.send_and_wait("orders", b"one"))
            await cluster.advance(seconds=2)
            assert not sending.done()
            cluster.resume(1)
            await sending


@ottla.testing.simulated(seed=11)
async def test_unknown_broker_is_named_with_those_there_are() -> None:
    async with ottla.testing.simulate() as cluster:
        with pytest.raises(OttlaError, match="there is no broker 4; there are 1"):
            await cluster.crash(4)


def test_ordinary_loop_is_refused_with_the_remedy() -> None:
    async def on_a_real_loop() -> None:
        async with ottla.testing.simulate():
            pass

    with pytest.raises(OttlaError, match="simulated"):
        asyncio.run(on_a_real_loop())


def test_same_seed_gives_the_same_run() -> None:
    """Even the identities that a cluster draws are the seed's."""

    async def story() -> list[tuple[float, str, str]]:
        async with ottla.testing.simulate() as cluster:
            await cluster.create_topic("orders")
            async with Producer(cluster.bootstrap, **FAST) as producer:
                await producer.send_and_wait("orders", b"one")
            await cluster.stop(1)
            await cluster.start(1)
            return cluster.events()

    assert ottla.testing.run_virtual(story(), 5) == ottla.testing.run_virtual(story(), 5)
