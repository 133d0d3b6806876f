"""What went wrong elsewhere with batches that are sent again."""

import asyncio

from ottla.client import Delivery, Producer
from ottla.testing.simulation.cluster import SimulatedCluster

from . import idempotence_mutants as mutants
from .mutants import Mutate
from .stories import FAST, Story, committed, copy_on, in_sync, leader_of, until

PATIENT = {**FAST, "delivery_timeout_ms": 120_000}


def _hold_answers(cluster: SimulatedCluster, broker: int) -> None:
    """Let no answer arrive on the connections that clients have to a broker now."""
    for endpoint in cluster._world.network.endpoints_of(f"b{broker}"):
        if endpoint.get_extra_info("peername")[0] == "user":
            endpoint.stall()


def _others(cluster: SimulatedCluster, broker: int) -> list[int]:
    return [number for number in cluster._world.machines if number != broker]


async def send_unheard(cluster: SimulatedCluster, producer: Producer) -> "asyncio.Future[Delivery]":
    """Have every copy of a second record written, but nobody hear of it."""
    await producer.send_and_wait("t", b"one")
    _hold_answers(cluster, leader_of(cluster, "t"))
    again = asyncio.ensure_future(producer.send_and_wait("t", b"two"))
    await until(
        lambda: all(copy_on(cluster, each).log_end_offset == 2 for each in cluster._world.machines)
    )
    return again


async def s27_a_batch_is_sent_again_to_the_next_leader(cluster: SimulatedCluster) -> None:
    """It knows the batch from its copy, and tells the offset of the first time."""
    async with Producer(cluster.bootstrap, **PATIENT) as producer:
        again = await send_unheard(cluster, producer)
        await cluster.crash(leader_of(cluster, "t"))
        delivery = await again
        assert delivery.base_offset == 1
    assert await committed(cluster) == [b"one", b"two"]


async def s27_a_batch_is_sent_again_after_all_have_died(cluster: SimulatedCluster) -> None:
    """The log itself tells."""
    async with Producer(cluster.bootstrap, **PATIENT) as producer:
        again = await send_unheard(cluster, producer)
        for broker in cluster._world.machines:
            await cluster.crash(broker)
        for broker in cluster._world.machines:
            cluster._world.machines[broker].start()
        delivery = await again
        assert delivery.base_offset == 1
    assert await committed(cluster) == [b"one", b"two"]


async def s27_a_batch_that_was_cut_off_is_sent_again(cluster: SimulatedCluster) -> None:
    """Its leader was cut off with it, followed another, and leads again: the batch is new."""
    async with Producer(cluster.bootstrap, **PATIENT) as producer:
        await producer.send_and_wait("t", b"one")
        first = leader_of(cluster, "t")
        for other in (*_others(cluster, first), "store"):
            cluster.partition(first, other)
        for other in _others(cluster, first):
            cluster.partition("clients", other)
        again = asyncio.ensure_future(producer.send_and_wait("t", b"two"))
        await until(lambda: copy_on(cluster, first).log_end_offset == 2)
        await until(lambda: leader_of(cluster, "t") not in (first, -1))
        second = leader_of(cluster, "t")
        _heal_all_but_clients(cluster)
        await until(lambda: copy_on(cluster, first).log_end_offset == 1)
        await until(lambda: first in in_sync(cluster, "t"))
        await cluster.crash(second)
        await until(lambda: leader_of(cluster, "t") == first)
        await again
        cluster.heal()
        await cluster.start(second)
    assert await committed(cluster) == [b"one", b"two"]


def _heal_all_but_clients(cluster: SimulatedCluster) -> None:
    """Take back the cuts that were made first: those between brokers, and to the store."""
    cuts = cluster._world.cuts
    kept = cuts[-2 * 2 :]
    for mend in cuts[: -2 * 2]:
        mend()
    cuts[:] = kept


SCRIPTS: dict[Story, list[Mutate]] = {
    s27_a_batch_is_sent_again_to_the_next_leader: [mutants.followers_forget_producers],
    s27_a_batch_is_sent_again_after_all_have_died: [mutants.a_start_forgets_producers],
    s27_a_batch_that_was_cut_off_is_sent_again: [mutants.a_cut_forgets_nothing],
}
