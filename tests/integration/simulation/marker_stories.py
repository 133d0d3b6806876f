"""What went wrong elsewhere between a transaction's decision and the last of its markers."""

import asyncio

from ottla.client import Admin, Producer
from ottla.testing.simulation.cluster import SimulatedCluster

from . import transaction_mutants as mutants
from .mutants import Mutate
from .stories import (
    Story,
    committed,
    copy_on,
    hold_up,
    leader_of,
    patient_producer_of,
    producer_of,
    until,
)
from .transaction_stories import is_decided


def _apart(cluster: SimulatedCluster) -> tuple[int, int]:
    """The coordinator, and the leader of the records, which is another broker."""
    coordinator, leader = leader_of(cluster, "__transaction_state"), leader_of(cluster, "t")
    assert coordinator != leader
    return coordinator, leader


async def _begin(cluster: SimulatedCluster, producer: Producer) -> tuple[int, int]:
    """One whole transaction, so that markers have a connection, and the beginning of another."""
    await producer.init_transactions()
    for value in (b"before", b"first"):
        await producer.begin_transaction()
        await producer.send_and_wait("t", value)
        if value == b"before":
            await producer.commit_transaction()
    return _apart(cluster)


async def s25_a_marker_that_comes_during_the_next_transaction(cluster: SimulatedCluster) -> None:
    """It was sent again on another connection, and the next transaction has begun meanwhile."""
    async with producer_of(cluster) as producer:
        coordinator, leader = await _begin(cluster, producer)
        held = hold_up(cluster, leader, coordinator)
        await producer.commit_transaction()
        await asyncio.sleep(0.05)
        for endpoint in held:
            cluster._world.network.drop(endpoint, both=False)
        await until(lambda: copy_on(cluster, leader).log_end_offset == 4)
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"second")
        for endpoint in held:
            endpoint.release()
        await asyncio.sleep(1)
        await producer.abort_transaction()
    assert await committed(cluster) == [b"before", b"first"]


async def s25_a_marker_of_a_coordinator_of_the_past(cluster: SimulatedCluster) -> None:
    """It died with the marker under way; its successor wrote it, and the producer went on.

    The producer's epoch stays, as it did before KIP-890: only the coordinator's tells.
    """
    async with producer_of(cluster, 1) as producer:
        coordinator, leader = await _begin(cluster, producer)
        held = hold_up(cluster, leader, coordinator)
        await producer.commit_transaction()
        await asyncio.sleep(0.05)
        await cluster.crash(coordinator)
        await until(lambda: copy_on(cluster, leader).log_end_offset == 4)
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"second")
        for endpoint in held:
            endpoint.release()
        await asyncio.sleep(1)
        await producer.abort_transaction()
        await cluster.start(coordinator)
    assert await committed(cluster) == [b"before", b"first"]


async def s25_the_leader_dies_before_it_has_the_marker(cluster: SimulatedCluster) -> None:
    """The next leader is sent the marker."""
    async with patient_producer_of(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"decided")
        coordinator, leader = _apart(cluster)
        cluster.partition(coordinator, leader)
        await producer.commit_transaction()
        assert is_decided(cluster, coordinator)
        await cluster.crash(leader)
        cluster.heal()
        assert await committed(cluster) == [b"decided"]
        await cluster.start(leader)
    assert await committed(cluster) == [b"decided"]


async def s26_a_topic_that_is_deleted_with_a_transaction_open(cluster: SimulatedCluster) -> None:
    """The other partition is stable again, and the producer goes on."""
    await cluster.create_topic("gone")
    async with producer_of(cluster) as producer, Admin(cluster.bootstrap) as admin:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"one")
        await producer.send_and_wait("gone", b"lost")
        await admin.topics.delete(["gone"])
        await producer.commit_transaction()
        assert await committed(cluster) == [b"one"]
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"two")
        await producer.commit_transaction()
    assert await committed(cluster) == [b"one", b"two"]


SCRIPTS: dict[Story, list[Mutate]] = {
    s25_a_marker_that_comes_during_the_next_transaction: [mutants.late_markers_count],
    s25_a_marker_of_a_coordinator_of_the_past: [mutants.old_coordinators_are_obeyed],
    s25_the_leader_dies_before_it_has_the_marker: [mutants.markers_are_sent_once],
    s26_a_topic_that_is_deleted_with_a_transaction_open: [mutants.deleted_topics_are_waited_for],
}
