"""`ottla.diagnosis.whatif` predicts what real clusters then do."""

import asyncio
import random

import pytest

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import Admin, Consumer, Producer
from ottla.diagnosis.whatif import (
    ClusterCopy,
    Prediction,
    add_brokers,
    change_min_isr,
    copied,
    lose_rack,
    stop,
)
from ottla.metadata.image import NO_LEADER
from ottla.operations.placement import balance, plan_balance
from ottla.testing.cluster import Cluster

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


async def random_cluster(cluster: Cluster, chance: random.Random) -> None:
    """Make topics of all kinds, and let a broker be down or have an ISR that shrank."""
    for number in range(4):
        factor = chance.randint(1, 3)
        await cluster.create_topic(
            f"t{number}",
            chance.randint(1, 4),
            factor,
            {
                "min.insync.replicas": str(chance.randint(1, factor)),
                "unclean.leader.election.enable": chance.choice(["true", "false"]),
            },
        )
    if chance.random() < 0.5:
        gone = chance.choice(list(cluster.brokers))
        await cluster.kill(gone)
        await settled(cluster)


def states(cluster: Cluster) -> dict[TopicPartition, tuple[int, tuple[int, ...]]]:
    """Leader and ISR of each partition, as one broker sees them."""
    return {
        TopicPartition(topic.name, index): (one.leader, one.isr)
        for topic in cluster.any.image.topics.values()
        for index, one in enumerate(topic.partitions)
    }


async def settled(cluster: Cluster) -> None:
    """Wait until no partition is led by, or has in its ISR, a broker that is gone."""

    def is_settled() -> bool:
        live = set(cluster.brokers)
        return all(
            set(broker.image.brokers) == live
            and all(
                one.leader in (live | {NO_LEADER}) and set(one.isr) <= live
                for topic in broker.image.topics.values()
                for one in topic.partitions
            )
            for broker in cluster.brokers.values()
        )

    await cluster.until(is_settled)


async def copy_of(cluster: Cluster) -> ClusterCopy:
    async with Admin(f"127.0.0.1:{cluster.any.port}") as admin:
        return await copied(admin)


def predicted_states(found: Prediction) -> dict[TopicPartition, tuple[int, tuple[int, ...]]]:
    return {name: (one.leader, one.isr) for name, one in found.after.partitions.items()}


async def check_lists(cluster: Cluster, found: Prediction) -> None:
    """What the lists of a prediction say is true of a cluster after the deed."""
    now = states(cluster)
    async with Admin(f"127.0.0.1:{cluster.any.port}") as admin:
        least = {one.name: one.min_isr for one in await admin.partitions.describe()}
    assert all(now[name][0] == NO_LEADER for name in found.offline)
    assert all(len(now[name][1]) < least[name] for name in found.read_only)
    assert all(len(now[name][1]) == 1 for name in found.one_copy)
    assert all(now[move.name][0] == move.after for move in found.leaders)


@pytest.mark.parametrize("seed", range(4))
def test_a_stop_of_a_broker_does_what_was_predicted(seed: int) -> None:
    """Leader and ISR of every partition of a random cluster, after a controlled stop."""

    async def main() -> None:
        chance = random.Random(seed)
        async with Cluster(4, racks=RACKS) as cluster:
            await random_cluster(cluster, chance)
            stopped = chance.choice(list(cluster.brokers))
            found = stop(await copy_of(cluster), stopped)
            await cluster.shut_down(stopped)
            await settled(cluster)
            assert states(cluster) == predicted_states(found)
            await check_lists(cluster, found)

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_of_a_rack_does_what_was_predicted(seed: int) -> None:
    """Its brokers are killed; partitions that had all copies there are offline."""

    async def main() -> None:
        chance = random.Random(100 + seed)
        async with Cluster(4, racks=RACKS) as cluster:
            await random_cluster(cluster, chance)
            rack = chance.choice("ab")
            found = lose_rack(await copy_of(cluster), rack)
            for broker in [one for one in cluster.brokers if RACKS[one] == rack]:
                await cluster.kill(broker)
            await settled(cluster)
            assert states(cluster) == predicted_states(found)
            await check_lists(cluster, found)

    asyncio.run(main())


def test_groups_follow_the_partitions_of_their_coordinator() -> None:
    """After the stop their coordinator is the predicted leader, or there is none."""

    async def main() -> None:
        async with Cluster(3, {"offsets.topic.replication.factor": "2"}) as cluster:
            bootstrap = f"127.0.0.1:{cluster.any.port}"
            await cluster.create_topic("t", 1, 3)
            async with Producer(bootstrap) as producer:
                await producer.send_and_wait("t", b"x")
            for group in ("g1", "g2", "g3", "g4", "g5", "g6"):
                async with Consumer(bootstrap, "t", group_id=group) as consumer:
                    await anext(consumer)
            before = await copy_of(cluster)
            found = stop(before, 2)
            moved = {move.name.partition: move for move in found.leaders}
            assert set(found.groups_move) <= set(before.groups) == {f"g{n}" for n in range(1, 7)}
            assert found.groups_move
            await cluster.shut_down(2)
            await settled(cluster)
            async with Admin(f"127.0.0.1:{cluster.any.port}") as admin:
                for group in await admin.groups.describe_all(found.groups_move):
                    assert group.coordinator_id in {move.after for move in moved.values()} - {2}

    asyncio.run(main())


def test_a_larger_min_isr_makes_read_only_what_was_predicted() -> None:
    """Of a topic with a replica that is down; and which broker may stop after that."""

    async def main() -> None:
        async with Cluster(3) as cluster:
            await cluster.create_topic("t", 3, 3, {"min.insync.replicas": "2"})
            await cluster.create_topic("other", 1, 2)
            await cluster.kill(3)
            await settled(cluster)
            copy = await copy_of(cluster)
            assert {name.topic for name in change_min_isr(copy, 3).read_only} <= {"other"}
            found = change_min_isr(copy, 3, ["t"])
            assert sorted(found.read_only) == [TopicPartition("t", index) for index in range(3)]
            async with Admin(f"127.0.0.1:{cluster.any.port}") as admin:
                await admin.topics.alter("t", {"min.insync.replicas": "3"})
                after = await admin.partitions.describe(["t"])
            assert all(one.is_under_min_isr for one in after)
            with pytest.raises(OttlaError, match="there is no topic 'none'"):
                change_min_isr(copy, 1, ["none"])

    asyncio.run(main())


def test_new_brokers_get_what_was_predicted() -> None:
    """A balance with the new broker moves exactly these partitions, to these brokers."""

    async def main() -> None:
        async with Cluster(3) as cluster:
            bootstrap = f"127.0.0.1:{cluster.any.port}"
            await cluster.kill(3)
            await cluster.until(lambda: len(cluster.any.image.brokers) == 2)
            await cluster.create_topic("t", 6, 2)
            async with Producer(bootstrap) as producer:
                await producer.send_and_wait("t", b"x" * 1000, partition=0)
            found = add_brokers(await copy_of(cluster), 1)
            assert found.added == (3,)
            assert found.replicas == {1: (6, 4), 2: (6, 4), 3: (0, 4)}
            await cluster.restart(3)
            await cluster.until(lambda: len(cluster.any.image.brokers) == 3)
            async with Admin(bootstrap) as admin:
                plan = await plan_balance(admin)
                assert dict(plan.moves.plan) == dict(found.moves)
                assert plan.moves.copied_bytes == found.copied_bytes
                await balance(admin, plan, 10, lambda *_: None)
                after = {one.name: one.replicas for one in await admin.partitions.describe()}
            assert {name: after[name] for name in found.moves} == found.moves

    asyncio.run(main())


def test_a_broker_or_rack_that_is_not_there_is_refused_with_those_that_are() -> None:
    """A prediction for a mistyped name would comfort falsely."""
    copy = ClusterCopy({}, {}, {1: "a", 2: None})
    with pytest.raises(OttlaError, match=r"broker 3 is not alive; there are \[1, 2\]"):
        stop(copy, 3)
    with pytest.raises(OttlaError, match="no live broker is in rack 'b'; there are a"):
        lose_rack(copy, "b")


def test_a_copy_of_apache_kafka(bootstrap: str) -> None:
    """The only broker's stop takes every partition offline, of Ottla and of Kafka."""

    async def main() -> Prediction:
        async with Admin(bootstrap) as admin:
            await admin.topics.create(f"whatif-{random.random()}", 2, 1)
            copy = await copied(admin)
            return stop(copy, next(iter(copy.racks)))

    found = asyncio.run(main())
    assert len(found.offline) == len(found.after.partitions) >= 2
