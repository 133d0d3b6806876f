"""S13: a broker restarts quickly; what was meant for its earlier life comes late (KIP-380)."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.testing.cluster import Cluster
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrRequest,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)


async def bounced(cluster):
    """Broker 2, restarted and a member again, and the epoch of its earlier life."""
    await cluster.create_topic("t", assignments={0: [2, 1]})
    before = cluster.brokers[2].parts.cluster.fence.broker_epoch
    await cluster.kill(2)
    broker = await cluster.restart(2)
    await cluster.until(
        lambda: (
            broker.partitions.find("t", 0) is not None
            and set(broker.image.partition("t", 0).isr) == {1, 2}
        )
    )
    return broker, before


def deletion(broker, broker_epoch):
    """The controller's order to delete t-0, in the term that is known."""
    leader_epoch = broker.image.partition("t", 0).leader_epoch
    return StopReplicaRequest(
        controller_id=broker.image.controller_id,
        controller_epoch=broker.parts.cluster.fence.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=[
            StopReplicaTopicState(
                topic_name="t",
                partition_states=[
                    StopReplicaPartitionState(
                        partition_index=0, leader_epoch=leader_epoch, delete_partition=True
                    )
                ],
            )
        ],
    )


def test_late_orders_for_an_earlier_life_change_nothing():
    """Its partitions are neither stopped nor given roles of old."""

    async def main():
        async with Cluster(3) as cluster:
            broker, before = await bounced(cluster)
            with pytest.raises(OttlaError) as told:
                await broker.parts.metadata.orders.stop_replica(deletion(broker, before))
            assert told.value.code is ErrorCode.STALE_BROKER_EPOCH
            old = LeaderAndIsrRequest(
                controller_id=broker.image.controller_id,
                controller_epoch=broker.parts.cluster.fence.controller_epoch,
                broker_epoch=before,
            )
            with pytest.raises(OttlaError) as told:
                await broker.parts.metadata.orders.leader_and_isr(old)
            assert told.value.code is ErrorCode.STALE_BROKER_EPOCH
            assert broker.partitions.find("t", 0) is not None

    asyncio.run(main())


def test_the_same_order_for_this_life_is_obeyed():
    """It is the broker epoch that decides: with it, the partition goes (the old behaviour)."""

    async def main():
        async with Cluster(3) as cluster:
            broker, _ = await bounced(cluster)
            await broker.parts.metadata.orders.stop_replica(
                deletion(broker, broker.parts.cluster.fence.broker_epoch)
            )
            assert broker.partitions.find("t", 0) is None

    asyncio.run(main())


def test_a_late_controlled_shutdown_does_not_stop_the_next_life():
    """The controller knows a newer registration, and moves nothing away from it."""

    async def main():
        async with Cluster(3) as cluster:
            broker, before = await bounced(cluster)
            await cluster.until(lambda: cluster.controller is not None)
            controller = cluster.controller.parts.controller
            with pytest.raises(OttlaError) as told:
                await controller.shut_down(2, before)
            assert told.value.code is ErrorCode.STALE_BROKER_EPOCH
            assert set(broker.image.partition("t", 0).isr) == {1, 2}
            assert 2 in broker.image.brokers

    asyncio.run(main())
