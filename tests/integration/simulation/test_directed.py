"""Scenarios that take minutes, or an instant that has to be hit: in virtual time."""

import asyncio
import json
from collections.abc import Callable

import pytest

import ottla.testing
from ottla.client import (
    Admin,
    Consumer,
    Producer,
    ProducerOptions,
    TopicPartition,
)
from ottla.testing.simulation.cluster import SimulatedCluster

FAST = ProducerOptions(request_timeout_ms=1_000, retry_backoff_ms=20, retry_backoff_max_ms=200)
NAME = TopicPartition("t", 0)
# Whatever happened, so soon all is as it was.
BACK_S = 10.0


def state(cluster: SimulatedCluster, name: TopicPartition = NAME) -> dict[str, object]:
    """A partition's state as the store has it."""
    path = f"/brokers/topics/{name.topic}/partitions/{name.partition}/state"
    told: dict[str, object] = json.loads(cluster._world.tree.entries[path].data)
    return told


async def until(cluster: SimulatedCluster, condition: Callable[[], bool]) -> float:
    """Wait for `condition`, and give the virtual seconds it took."""
    began_s = cluster._world.loop.time()
    while not condition():
        assert cluster._world.loop.time() - began_s < 60, state(cluster)
        await asyncio.sleep(0.01)
    return cluster._world.loop.time() - began_s


async def read(
    cluster: SimulatedCluster, count: int, partitions: int = 1
) -> dict[int, list[bytes]]:
    """The first `count` records, by partition; then what else there is, which is nothing."""
    found: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    async with Consumer(cluster.bootstrap, request_timeout_ms=1_000) as consumer:
        names = [TopicPartition("t", index) for index in range(partitions)]
        await consumer.assign(names)
        while sum(map(len, found.values())) < count:
            for batch in (await consumer.poll(1)).by_partition:
                found[batch.partition] += [record.value or b"" for record in batch.records]
        ends = await consumer.end_offsets(names)
    assert sum(ends.values()) == count
    return found


@pytest.mark.parametrize("seed", range(3))
def test_leaders_go_on_while_the_store_is_away_for_a_minute(seed: int) -> None:
    """S33: acks=all for 60 s, none that is not true, no election; all is well 10 s afterwards."""

    async def story() -> None:
        async with ottla.testing.simulate(3, {"min.insync.replicas": "2"}) as cluster:
            await cluster.create_topic("t")
            async with Producer(cluster.bootstrap, **FAST) as producer:
                await producer.send_and_wait("t", b"before")
                before = state(cluster)
                leader = before["leader"]
                dead = next(number for number in (1, 2, 3) if number != leader)
                cluster._world.store_faults.outage()
                for number in range(60):
                    await producer.send_and_wait("t", b"%d" % number)
                    await cluster.advance(seconds=1)
                assert state(cluster) == before
                # The ISR cannot shrink: nothing is acknowledged that the dead one lacks.
                await cluster.crash(dead)
                waiting = asyncio.ensure_future(producer.send_and_wait("t", b"waits"))
                await cluster.advance(seconds=20)
                assert not waiting.done()
                cluster._world.store_faults.restore()
                began_s = cluster._world.loop.time()
                await waiting
                assert cluster._world.loop.time() - began_s < BACK_S
                after = state(cluster)
                assert (after["leader"], after["leader_epoch"]) == (leader, before["leader_epoch"])
                await cluster.start(dead)
                await until(cluster, lambda: len(state(cluster)["isr"]) == 3)
            values = (await read(cluster, 62))[0]
            assert values == [b"before", *(b"%d" % number for number in range(60)), b"waits"]

    ottla.testing.run_virtual(story(), seed)


# Milliseconds after the death of the leader: orders are under way, half carried out, or obeyed.
INSTANTS_MS = (1, 2, 3, 5, 8, 12, 20, 40)


@pytest.mark.parametrize("stuck", ["successor", "follower"])
def test_a_broker_that_stands_still_within_a_transition_finds_its_place(stuck: str) -> None:
    """S16, KAFKA-2729 and 9307: stopped past its session at any instant of it, then let go on.

    Roles come wholly or not at all; it is a member again by itself, and no record is lost.
    """

    async def story() -> None:
        async with ottla.testing.simulate(3, {"min.insync.replicas": "2"}) as cluster:
            await cluster.create_topic("t")
            written = []
            async with Producer(cluster.bootstrap, **FAST) as producer:
                for instant_ms in INSTANTS_MS:
                    before = state(cluster)
                    isr = before["isr"]
                    leader = before["leader"]
                    others = [number for number in isr if number != leader]
                    slow = others[0] if stuck == "successor" else others[1]
                    value = b"%d" % instant_ms
                    await producer.send_and_wait("t", b"before " + value)
                    await cluster.crash(leader)
                    await cluster.advance(seconds=instant_ms / 1000)
                    cluster.pause(slow)
                    # Longer than a session of three seconds.
                    await cluster.advance(seconds=5)
                    await cluster.start(leader)
                    cluster.resume(slow)
                    took_s = await until(cluster, lambda: len(state(cluster)["isr"]) == 3)
                    assert took_s < BACK_S, (instant_ms, cluster.events()[-40:])
                    await producer.send_and_wait("t", b"after " + value)
                    written += [b"before " + value, b"after " + value]
            assert (await read(cluster, len(written)))[0] == written

    ottla.testing.run_virtual(story(), 16)


@pytest.mark.parametrize("bounce", ["clean", "hard"])
def test_partitions_move_while_brokers_bounce_with_all_replicas_needed(bounce: str) -> None:
    """S30: min ISR equals the replication factor; four brokers, each of them restarted in turn.

    What was acknowledged is there once and in order, and all moves come to their end.
    """
    names = [TopicPartition("t", index) for index in range(4)]

    async def story() -> None:
        settings = {"min.insync.replicas": "3", "log.roll.ms": "5000"}
        async with ottla.testing.simulate(4, settings) as cluster:
            await cluster.create_topic("t", partitions=len(names))
            sent: dict[int, list[bytes]] = {name.partition: [] for name in names}
            is_over = asyncio.Event()

            async def write(index: int) -> None:
                async with Producer(cluster.bootstrap, **FAST) as producer:
                    while not is_over.is_set():
                        value = b"%d" % len(sent[index])
                        await producer.send_and_wait("t", value, partition=index)
                        sent[index].append(value)
                        await asyncio.sleep(0.05)

            writing = asyncio.gather(*(write(name.partition) for name in names))
            for turn in range(4):
                await cluster.advance(seconds=1)
                # Each round one replica of each partition gives way to the broker without one.
                wanted = {
                    name: [(turn + name.partition + place) % 4 + 1 for place in (1, 2, 3)]
                    for name in names
                }
                async with Admin(cluster.bootstrap) as admin:
                    assert set((await admin.partitions.reassign(wanted)).values()) == {None}
                await cluster.advance(seconds=0.05)
                broker = turn + 1
                if bounce == "clean":
                    await cluster.stop(broker)
                else:
                    await cluster.crash(broker)
                await cluster.advance(seconds=1)
                await cluster.start(broker)
                took_s = await until(cluster, lambda wanted=wanted: has_moved(cluster, wanted))
                assert took_s < 30
            is_over.set()
            await writing
            assert min(map(len, sent.values())) > 50
            count = sum(map(len, sent.values()))
            assert await read(cluster, count, len(names)) == sent

    ottla.testing.run_virtual(story(), 30)


def has_moved(cluster: SimulatedCluster, wanted: dict[TopicPartition, list[int]]) -> bool:
    """Whether all replicas are those wanted, and in sync."""
    topic = json.loads(cluster._world.tree.entries["/brokers/topics/t"].data)
    return not topic.get("adding_replicas") and all(
        topic["partitions"][str(name.partition)] == replicas
        and set(state(cluster, name)["isr"]) == set(replicas)  # type: ignore[call-overload]
        for name, replicas in wanted.items()
    )
