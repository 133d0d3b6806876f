"""Groups that cannot be loaded yet are loaded as soon as they can be."""

from ottla.broker.groups.groups import Groups
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from tests.integration.replication.scenes import play
from tests.integration.replication.test_failover import commit, coordinator


def test_groups_of_a_leader_in_doubt_are_loaded_afterwards():
    """It leads on in the same term, so nobody but this broker could load them."""

    async def scenario(scene):
        await scene.create("a", 1)
        await coordinator(scene)
        await commit(scene, 1, 5)
        broker = scene.cluster.brokers[1]
        partition = next(p for p in broker.partitions if p.topic == CONSUMER_OFFSETS)
        end = partition.log_end_offset
        # As one that has just been elected, and does not know whether it still leads.
        partition.lower_high_watermark(0)
        partition.close_to_clients("in doubt")
        groups = Groups(
            broker.parts.cluster.view,
            broker.runtime,
            broker.settings,
            broker.partitions,
        )
        groups.begin()
        partition.open_to_clients()
        partition.advance(end)
        await scene.cluster.until(
            lambda: [s.coordinator is not None for s in groups.shards()] == [True]
        )
        await groups.stop()

    play(scenario, 1, {"offsets.topic.num.partitions": "1"})
