"""What went wrong with who is in sync: partitions that idle, and brokers that stand still then."""

import asyncio
from collections.abc import Callable
from typing import Any

import ottla.testing
from ottla.client import Producer, TopicPartition
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.virtual.process import FAST_S

from . import replica_mutants as mutants
from .idempotence_stories import PATIENT, send_unheard
from .mutants import Mutate
from .stories import FAST, copy_on, hold_up, in_sync, leader_of, until

# Longer than `replica.lag.time.max.ms`, which is 30 s.
IDLE_S = 33.0
ALL = [1, 2, 3]
# A topic for which one in sync is enough.
ALONE = "alone"


def _end(cluster: SimulatedCluster, broker: int, topic: str) -> int:
    return copy_on(cluster, broker, TopicPartition(topic, 0)).log_end_offset


async def _with_followers_paused(cluster: SimulatedCluster, producer: Producer, topic: str) -> None:
    """A record for which the leader alone is there, for 1 s; all are in sync throughout."""
    leader = leader_of(cluster, topic)
    followers = [broker for broker in ALL if broker != leader]
    end = _end(cluster, leader, topic)
    for broker in followers:
        cluster.pause(broker)
    sent = asyncio.ensure_future(producer.send_and_wait(topic, b"after"))
    for _ in range(10):
        await asyncio.sleep(0.1)
        assert sorted(in_sync(cluster, topic)) == ALL
        assert not sent.done()
    assert _end(cluster, leader, topic) == end + 1
    for broker in followers:
        cluster.resume(broker)
    await sent
    assert [_end(cluster, broker, topic) for broker in ALL] == [end + 1] * 3
    assert sorted(in_sync(cluster, topic)) == ALL


async def first_record_after_a_quiet_time(cluster: SimulatedCluster) -> None:
    """Acknowledged when the followers are back, with two in sync at least."""
    async with Producer(cluster.bootstrap, **FAST) as producer:
        await producer.send_and_wait("t", b"before")
        await cluster.advance(seconds=IDLE_S)
        await _with_followers_paused(cluster, producer, "t")


async def first_record_after_a_quiet_time_alone(cluster: SimulatedCluster) -> None:
    """The same where one in sync would be enough: the leader alone acknowledges nothing."""
    await cluster.create_topic(ALONE, settings={"min.insync.replicas": "1"})
    async with Producer(cluster.bootstrap, **FAST) as producer:
        await producer.send_and_wait(ALONE, b"before")
        for _ in range(3):
            await cluster.advance(seconds=IDLE_S)
            await _with_followers_paused(cluster, producer, ALONE)


async def follower_with_a_slow_disk(cluster: SimulatedCluster) -> None:
    """It takes longer to flush than a dead broker is silent, and is heard of all the time."""
    await cluster.create_topic(ALONE, settings={"min.insync.replicas": "1"})
    async with Producer(cluster.bootstrap, **FAST) as producer:
        await producer.send_and_wait(ALONE, b"before")
        leader = leader_of(cluster, ALONE)
        slow = cluster._world.machines[leader % 3 + 1]
        assert slow.process is not None
        slow.process.blocking_s = (2.5, 2.5)
        sent = asyncio.ensure_future(producer.send_and_wait(ALONE, b"slow"))
        await until(lambda: copy_on(cluster, leader, TopicPartition(ALONE, 0)).high_watermark == 2)
        assert sorted(in_sync(cluster, ALONE)) == ALL
        slow.process.blocking_s = FAST_S
        await sent


async def leader_of_an_idle_partition_without_the_store(cluster: SimulatedCluster) -> None:
    """S33: its followers follow all the while, though they name no partition in their fetches."""
    async with Producer(cluster.bootstrap, **FAST) as producer:
        await producer.send_and_wait("t", b"before")
        await cluster.advance(seconds=IDLE_S)
        leader = leader_of(cluster, "t")
        broker = cluster._world.machines[leader].broker
        assert broker is not None
        roles, clock = broker.parts.replication.roles, broker.runtime.clock
        cluster._world.store_faults.outage()
        await until(lambda: not roles.is_confirmed(clock.monotonic_ms()))
        for _ in range(2_000):
            assert copy_on(cluster, leader).closed is None
            await asyncio.sleep(0.0005)
        cluster._world.store_faults.restore()


async def session_renewed_between_two_looks(cluster: SimulatedCluster) -> None:
    """A partition that was closed in doubt opens again, though no look at the session saw doubt."""
    async with Producer(cluster.bootstrap, **FAST) as producer:
        await producer.send_and_wait("t", b"before")
        await cluster.advance(seconds=IDLE_S)
        leader = leader_of(cluster, "t")
        broker = cluster._world.machines[leader].broker
        assert broker is not None
        replication, partition = broker.parts.replication, copy_on(cluster, leader)
        replication.registration.confirmed_until_ms = broker.runtime.clock.monotonic_ms()
        replication.roles.on_deadline(partition)
        assert partition.closed is not None
        await asyncio.sleep(0.2)
        assert partition.closed is None
        await producer.send_and_wait("t", b"after")


def leader_that_stood_still() -> None:
    """Its followers had fetched meanwhile; it hears of that only when it goes on."""
    _play_pauses([1.6])


def leader_that_stood_still_twice() -> None:
    """The second time while it listens after the first (idle seed 3269)."""
    _play_pauses([0.6, 1.6])


def _play_pauses(pauses_s: list[float]) -> None:
    async def story() -> None:
        settings = {"replica.lag.time.max.ms": "1000", "broker.session.timeout.ms": "9000"}
        async with ottla.testing.simulate(3, settings) as cluster:
            await cluster.create_topic("t")
            async with Producer(cluster.bootstrap, **FAST) as producer:
                await producer.send_and_wait("t", b"before")
                for number in range(2, 14):
                    await cluster.advance(seconds=5)
                    await _with_leader_paused(cluster, producer, number, pauses_s)

    ottla.testing.run_virtual(story())


async def _with_leader_paused(
    cluster: SimulatedCluster, producer: Producer, records: int, pauses_s: list[float]
) -> None:
    """A record that is appended just before the leader stands still.

    What followers say of it comes to the leader's machine late, and yet before it goes on.
    Between two pauses it runs for half the time that it listens.
    """
    leader = leader_of(cluster, "t")
    sent = asyncio.ensure_future(producer.send_and_wait("t", b"during"))
    await until(lambda: _end(cluster, leader, "t") == records)
    cluster.pause(leader)
    followers = [broker for broker in ALL if broker != leader]
    held = [end for broker in followers for end in hold_up(cluster, leader, broker)]
    for pause_s in pauses_s[:-1]:
        await asyncio.sleep(pause_s)
        cluster.resume(leader)
        await asyncio.sleep(0.05)
        cluster.pause(leader)
    await asyncio.sleep(pauses_s[-1])
    for endpoint in held:
        endpoint.release()
    await asyncio.sleep(0.1)
    cluster.resume(leader)
    await sent
    assert sorted(in_sync(cluster, "t")) == ALL


def batch_sent_again_while_followers_pause() -> None:
    """They hold it since the first time: they lack nothing until the next record is written."""

    async def story() -> None:
        settings = {"replica.lag.time.max.ms": "1500", "broker.session.timeout.ms": "9000"}
        async with ottla.testing.simulate(3, settings) as cluster:
            await cluster.create_topic("t")
            async with Producer(cluster.bootstrap, **PATIENT) as producer:
                again = await send_unheard(cluster, producer)
                # The leader has heard, too, that its followers hold it.
                await asyncio.sleep(0.6)
                followers = [broker for broker in ALL if broker != leader_of(cluster, "t")]
                assert not again.done()
                for broker in followers:
                    cluster.pause(broker)
                assert (await again).base_offset == 1
                await asyncio.sleep(2)
                sent = asyncio.ensure_future(producer.send_and_wait("t", b"after"))
                for _ in range(10):
                    await asyncio.sleep(0.1)
                    assert sorted(in_sync(cluster, "t")) == ALL
                for broker in followers:
                    cluster.resume(broker)
                assert (await sent).base_offset == 2
                assert sorted(in_sync(cluster, "t")) == ALL

    ottla.testing.run_virtual(story())


SCRIPTS: dict[Callable[..., Any], list[Mutate]] = {
    first_record_after_a_quiet_time: [mutants.idle_time_counts],
    first_record_after_a_quiet_time_alone: [mutants.idle_time_counts, mutants.idle_time_is_silence],
    follower_with_a_slow_disk: [mutants.other_partitions_do_not_count],
    leader_of_an_idle_partition_without_the_store: [mutants.idle_followers_are_not_asked],
    batch_sent_again_while_followers_pause: [mutants.repeats_are_growth],
    session_renewed_between_two_looks: [mutants.only_looks_see_doubt],
    leader_that_stood_still: [mutants.judges_without_listening],
    leader_that_stood_still_twice: [mutants.listens_once],
}
