"""What went wrong with transactions elsewhere, step by step; and again where a rule is broken."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

import pytest

import ottla.testing
from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import (
    Consumer,
    ConsumerOptions,
    ProducerFenced,
    ProducerOptions,
    TopicPartition,
    TransactionalProducer,
)
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.transport import Endpoint

from . import transaction_mutants as mutants

Story = Callable[[SimulatedCluster], Awaitable[None]]
SETTINGS = {
    "min.insync.replicas": "2",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
FAST = ProducerOptions(
    request_timeout_ms=1_000,
    delivery_timeout_ms=10_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=200,
)
NAME = TopicPartition("t", 0)
# Whatever happened, so soon nothing is open any more.
ENDED_S = 20.0


def producer_of(
    cluster: SimulatedCluster, version: int = 2, **options: int
) -> TransactionalProducer:
    return TransactionalProducer(
        cluster.bootstrap, "id", FAST, transaction_version_max=version, **options
    )


def leader_of(cluster: SimulatedCluster, topic: str) -> int:
    entry = cluster._world.tree.entries[f"/brokers/topics/{topic}/partitions/0/state"]
    leader: int = json.loads(entry.data)["leader"]
    return leader


def hold_up(cluster: SimulatedCluster, broker: int) -> list[Endpoint]:
    """Let nothing arrive that the clients send on the connections they have to a broker."""
    network = cluster._world.network
    found = [
        endpoint
        for endpoint in network.endpoints_of("user")
        if endpoint.get_extra_info("peername")[0] == f"b{broker}"
    ]
    assert found
    for endpoint in found:
        endpoint.stall()
    return found


async def committed(cluster: SimulatedCluster) -> list[bytes | None]:
    """What readers of committed records see, once nothing is open; fails where something is."""
    found: list[bytes | None] = []
    options = ConsumerOptions(request_timeout_ms=1_000, read_committed=True)
    async with (
        Consumer(cluster.bootstrap, options) as consumer,
        Consumer(cluster.bootstrap, ConsumerOptions(request_timeout_ms=1_000)) as other,
    ):
        for _ in range(int(ENDED_S * 10)):
            end = (await consumer.end_offsets([NAME]))[NAME]
            if end == (await other.end_offsets([NAME]))[NAME]:
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError(f"a transaction stays open at offset {end}")
        await consumer.assign([NAME])
        while await consumer.position(NAME) < end:
            for batch in await consumer.poll(500):
                found += [record.value for record in batch.records]
    return found


async def s21_a_produce_that_comes_after_the_abort(cluster: SimulatedCluster) -> None:
    """KAFKA-14402, with a client whose epoch stays: the late batch opens nothing."""
    leader = leader_of(cluster, "t")
    async with producer_of(cluster, 1) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"one")
        held = hold_up(cluster, leader)
        late = await producer.send("t", b"late")
        await asyncio.sleep(0.1)
        await producer.abort_transaction()
        with contextlib.suppress(OttlaError):
            await late
        for endpoint in held:
            endpoint.release()
        await asyncio.sleep(1)
    assert await committed(cluster) == []


async def s22_a_commit_that_comes_during_the_next_transaction(cluster: SimulatedCluster) -> None:
    """KIP-890: it names the epoch of the transaction before, and ends nothing."""
    async with producer_of(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"first")
        held = hold_up(cluster, leader_of(cluster, "__transaction_state"))
        # The first request is held up, and tried again on another connection.
        await producer.commit_transaction()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"second")
        for endpoint in held:
            endpoint.release()
        await asyncio.sleep(1)
        with contextlib.suppress(OttlaError):
            await producer.abort_transaction()
    assert await committed(cluster) == [b"first"]


async def s23_the_coordinator_dies_before_the_markers_are_written(
    cluster: SimulatedCluster,
) -> None:
    """What was decided is carried out by the next one, once."""
    async with producer_of(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"decided")
        coordinator, leader = leader_of(cluster, "__transaction_state"), leader_of(cluster, "t")
        assert coordinator != leader
        ending = asyncio.ensure_future(producer.commit_transaction())
        while not _is_decided(cluster, coordinator):  # noqa: ASYNC110  # Nothing tells of it.
            await asyncio.sleep(0.0005)
        cluster.partition(coordinator, leader)
        await cluster.crash(coordinator)
        cluster.heal()
        await ending
        await cluster.start(coordinator)
    assert await committed(cluster) == [b"decided"]


def _is_decided(cluster: SimulatedCluster, broker: int) -> bool:
    running = cluster._world.machines[broker].broker
    assert running is not None
    return any(
        known.is_prepared
        for shard in running.transactions.shards()
        if shard.coordinator is not None
        for known in shard.coordinator.transactions.values()
    )


async def s24_a_producer_whose_id_another_has_taken(cluster: SimulatedCluster) -> None:
    """Nothing that it had open counts, and it can do nothing more."""
    async with producer_of(cluster) as old, producer_of(cluster) as new:
        await old.init_transactions()
        await old.begin_transaction()
        await old.send_and_wait("t", b"old")
        await new.init_transactions()
        await new.begin_transaction()
        await new.send_and_wait("t", b"new")
        await new.commit_transaction()
        with pytest.raises(ProducerFenced):
            await old.commit_transaction()
    assert await committed(cluster) == [b"new"]


async def a_producer_that_never_comes_back(cluster: SimulatedCluster) -> None:
    """Its transaction is aborted when its time is over, and holds up no reader."""
    producer = producer_of(cluster, transaction_timeout_ms=3_000)
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait("t", b"abandoned")
    # Its host is gone: nobody aborts for it.
    cluster._world.network.switch_off("user")
    cluster._world.network.switch_on("user")
    assert await committed(cluster) == []


async def offsets_of_a_transaction_that_is_aborted(cluster: SimulatedCluster) -> None:
    """The group stays where it was."""
    async with (
        producer_of(cluster) as producer,
        Consumer(cluster.bootstrap, ConsumerOptions(group_id="g")) as consumer,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_offsets({NAME: 3}, "g")
        await producer.commit_transaction()
        await producer.begin_transaction()
        await producer.send_offsets({NAME: 7}, "g")
        await producer.abort_transaction()
        assert (await consumer.committed([NAME]))[NAME].offset == 3


SCRIPTS: dict[Story, mutants.Mutate] = {
    s21_a_produce_that_comes_after_the_abort: mutants.nothing_is_verified,
    s22_a_commit_that_comes_during_the_next_transaction: mutants.epoch_stays,
    s23_the_coordinator_dies_before_the_markers_are_written: mutants.decided_is_forgotten,
    s24_a_producer_whose_id_another_has_taken: mutants.nobody_is_fenced,
    a_producer_that_never_comes_back: mutants.nothing_is_overdue,
    offsets_of_a_transaction_that_is_aborted: mutants.offsets_count_before_the_marker,
}


def play(story: Story, seed: int) -> None:
    async def whole() -> None:
        async with ottla.testing.simulate(3, SETTINGS) as cluster:
            cluster._world.network.obeys_late = True
            await cluster.create_topic("t")
            await story(cluster)

    ottla.testing.run_virtual(whole(), seed)


@pytest.mark.parametrize("story", SCRIPTS, ids=lambda story: story.__name__)
def test_what_went_wrong_elsewhere_goes_well(story: Story) -> None:
    """In the order of events in which it once failed."""
    play(story, 1)


@pytest.mark.parametrize("story", SCRIPTS, ids=lambda story: story.__name__)
def test_it_goes_wrong_where_the_rule_is_broken(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is that rule which the script puts to the test."""
    SCRIPTS[story](monkeypatch)
    with pytest.raises((AssertionError, OttlaError, TimeoutError, pytest.fail.Exception)):
        play(story, 1)


def test_member_that_was_not_told_its_offsets_asks_again() -> None:
    """While a transaction holds them open nobody tells them; in the end all is read."""

    async def whole() -> None:
        async with ottla.testing.simulate(3, SETTINGS) as cluster:
            await cluster.create_topic("t")
            options = ConsumerOptions(group_id="g", retry_timeout_ms=1_000)
            async with producer_of(cluster) as producer:
                await producer.init_transactions()
                async with producer.transaction():
                    await producer.send_batch("t", [b"%d" % number for number in range(9)])
                await producer.begin_transaction()
                await producer.send_offsets({NAME: 5}, "g")
                async with Consumer(cluster.bootstrap, options) as consumer, asyncio.timeout(60):
                    consumer.subscribe("t")
                    with pytest.raises(OttlaError) as raised:
                        await _read_nothing(consumer)
                    assert raised.value.code is ErrorCode.UNSTABLE_OFFSET_COMMIT
                    await producer.commit_transaction()
                    found = []
                    while len(found) < 4:
                        found += await _values(consumer)
                    assert found == [b"5", b"6", b"7", b"8"]

    ottla.testing.run_virtual(whole(), 1)


async def _read_nothing(consumer: Consumer) -> None:
    while True:
        assert await consumer.poll(500) == []


async def _values(consumer: Consumer) -> list[bytes | None]:
    with contextlib.suppress(OttlaError):
        return [record.value for batch in await consumer.poll(500) for record in batch.records]
    return []
