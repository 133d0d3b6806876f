"""The canary of brokers: records that go around the ring, and what its status says of them."""

import asyncio
from collections.abc import Mapping

from ottla.base.ids import BrokerId
from ottla.broker.canary.canary import CanaryStatus, next_in_ring
from ottla.client import Admin, Consumer, Producer
from ottla.metadata.canary import TOPIC
from ottla.metadata.image import BrokerImage, ClusterImage
from ottla.testing.cluster import Cluster

ON = {"canary.interval.ms": "20"}


def seen(cluster: Cluster) -> Mapping[int, CanaryStatus]:
    return {number: broker.parts.canary.status() for number, broker in cluster.brokers.items()}


def at(cluster: Cluster) -> str:
    return f"127.0.0.1:{cluster.any.port}"


def image_of(*brokers: int) -> ClusterImage:
    live = {BrokerId(one): BrokerImage(BrokerId(one), {}) for one in brokers}
    return ClusterImage("c", brokers=live)


def test_the_brokers_form_a_ring_by_their_ids() -> None:
    """The last is followed by the first, and one alone by itself."""
    ring = image_of(5, 2, 9)
    assert [next_in_ring(BrokerId(one), ring) for one in (2, 5, 9)] == [5, 9, 2]
    assert next_in_ring(BrokerId(2), image_of(2)) == 2
    assert next_in_ring(BrokerId(2), image_of()) == 2


def test_it_is_off_unless_it_is_set() -> None:
    """No topic, no records, no connections."""

    async def main() -> None:
        async with Cluster(2) as cluster:
            await cluster.any.parts.metadata.topics.auto_create("t")
            assert TOPIC not in cluster.any.image.topics
            assert {one.interval_ms for one in seen(cluster).values()} == {0}
            assert {one.sent for one in seen(cluster).values()} == {0}

    asyncio.run(main())


def test_each_broker_proves_the_next_one_and_commits_to_its_groups() -> None:
    """Every record is read again; the numbers of the status add up."""

    async def main() -> None:
        async with Cluster(3, ON) as cluster:
            await cluster.create_topic("t", 1, 3)
            async with (
                Producer(at(cluster)) as producer,
                Consumer(at(cluster), "t", group_id="g") as consumer,
            ):
                await producer.send_and_wait("t", b"x")
                await anext(consumer)
            await cluster.until(lambda: all(one.commit.count > 2 for one in seen(cluster).values()))
            status = seen(cluster)
            assert {number: one.target for number, one in status.items()} == {1: 2, 2: 3, 3: 1}
            for one in status.values():
                assert one.lost == 0
                assert one.sent >= one.produce.count >= one.round_trip.count >= one.commit.count
                assert 0 < one.produce.last_ms <= one.produce.sum_ms
                assert one.produce.sum_ms < one.round_trip.sum_ms + one.produce.last_ms
            topic = cluster.any.image.topics[TOPIC]
            assert [one.replicas[0] for one in topic.partitions] == [1, 2, 3]
            async with Admin(at(cluster)) as admin:
                for group in await admin.groups.all():
                    if group.group_id.startswith(TOPIC):
                        coordinator = (await admin.groups.describe(group.group_id)).coordinator_id
                        assert coordinator in (1, 2, 3)

    asyncio.run(main())


def test_a_broker_that_is_alone_proves_itself() -> None:
    """Through its own log, without a connection, and without commits."""

    async def main() -> None:
        async with Cluster(1, ON) as cluster:
            await cluster.until(lambda: seen(cluster)[1].round_trip.count > 2)
            one = seen(cluster)[1]
            assert (one.target, one.lost, one.commit.count) == (1, 0, 0)

    asyncio.run(main())


def test_a_record_that_is_not_acknowledged_is_counted_as_failed() -> None:
    """The topic takes no batch of that size any more."""

    async def main() -> None:
        async with Cluster(2, ON) as cluster:
            await cluster.until(
                lambda: all(one.produce.count > 0 for one in seen(cluster).values())
            )
            async with Admin(at(cluster)) as admin:
                await admin.topics.alter(TOPIC, {"max.message.bytes": "1"})
            await cluster.until(lambda: all(one.failed > 2 for one in seen(cluster).values()))
            assert {one.lost for one in seen(cluster).values()} == {0}

    asyncio.run(main())


def test_the_ring_closes_again_without_a_broker_that_died() -> None:
    """The one before it proves the one after it."""

    async def main() -> None:
        async with Cluster(3, ON) as cluster:
            await cluster.until(
                lambda: all(one.produce.count > 0 for one in seen(cluster).values())
            )
            await cluster.kill(2)
            await cluster.until(lambda: seen(cluster)[1].target == 3)
            proven = seen(cluster)[1].round_trip.count
            await cluster.until(lambda: seen(cluster)[1].round_trip.count > proven + 2)

    asyncio.run(main())
