"""What went wrong with transactions elsewhere, step by step."""

import asyncio
import contextlib

import pytest

from ottla.base.errors import OttlaError
from ottla.client import Consumer, ProducerFenced
from ottla.testing.simulation.cluster import SimulatedCluster

from . import transaction_mutants as mutants
from .mutants import Mutate
from .stories import NAME, Story, committed, hold_up, leader_of, producer_of, until


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
        await until(lambda: is_decided(cluster, coordinator))
        cluster.partition(coordinator, leader)
        await cluster.crash(coordinator)
        cluster.heal()
        await ending
        await cluster.start(coordinator)
    assert await committed(cluster) == [b"decided"]


def is_decided(cluster: SimulatedCluster, broker: int) -> bool:
    """Whether a coordinator has decided a transaction, and not all partitions know."""
    running = cluster._world.machines[broker].broker
    assert running is not None
    return any(
        known.is_prepared
        for shard in running.parts.transactions.coordinator.shards()
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
        Consumer(cluster.bootstrap, group_id="g") as consumer,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({NAME: 3}, "g")
        await producer.commit_transaction()
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({NAME: 7}, "g")
        await producer.abort_transaction()
        assert await consumer.committed(NAME) == 3


SCRIPTS: dict[Story, list[Mutate]] = {
    s21_a_produce_that_comes_after_the_abort: [mutants.nothing_is_verified],
    s22_a_commit_that_comes_during_the_next_transaction: [mutants.epoch_stays],
    s23_the_coordinator_dies_before_the_markers_are_written: [mutants.decided_is_forgotten],
    s24_a_producer_whose_id_another_has_taken: [mutants.nobody_is_fenced],
    a_producer_that_never_comes_back: [mutants.nothing_is_overdue],
    offsets_of_a_transaction_that_is_aborted: [mutants.offsets_count_before_the_marker],
}
