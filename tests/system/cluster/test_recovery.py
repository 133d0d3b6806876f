"""S17: all who held the records lose power at once, and the cluster ends online without a loss."""

from random import Random

from ottla.base.ids import TopicPartition
from ottla.controller.election import How
from tests.integration.replication.scenes import play, values

MIN_ISR = {"min.insync.replicas": "2"}


async def cut_power(cluster, broker_id):
    """What was not flushed is gone, and the broker with it."""
    disk = cluster.brokers[broker_id].storage.filesystem
    await cluster.kill(broker_id)
    disk.crash(Random(broker_id))


async def all_lose_power(scene, **settings):
    """One after the other: two hold all that was acknowledged, and one of them some more."""
    cluster = scene.cluster
    await scene.create("t", 1, 2, 3, **settings)
    assert (await scene.write(1, "t", b"to all")).error_code == 0
    for gone, leader, value, acks in ((1, 2, b"to two", -1), (2, 3, b"to one", 1)):
        await cut_power(cluster, gone)
        await cluster.until(
            lambda leader=leader: (
                cluster.leader("t") == leader and scene.partition(leader, "t").closed is None
            )
        )
        assert (await scene.write(leader, "t", value, acks=acks)).error_code == 0
    await cluster.brokers[3].parts.replication.flusher.settle()
    await cut_power(cluster, 3)


def test_flushed_records_need_nobody_to_be_waited_for():
    """With group commit who was eligible still is: of two, either has what was acknowledged."""

    async def scenario(scene):
        cluster = scene.cluster
        await all_lose_power(scene)
        await cluster.restart(1)
        await cluster.restart(2)
        await cluster.until(lambda: cluster.leader("t") == 2)
        await cluster.restart(3)
        await cluster.until(lambda: scene.isr("t") == {1, 2, 3})
        await cluster.until(lambda: scene.marks("t")[2] == 2)
        assert values(await scene.read(2, "t")) == [b"to all", b"to two"]

    play(scenario, 3, MIN_ISR)


def test_who_has_most_is_elected_when_all_who_were_in_sync_are_back():
    """Where a power cut may have cost records: not before, however long the others run."""

    async def scenario(scene):
        cluster = scene.cluster
        await all_lose_power(scene, flush_messages="1")
        await cluster.restart(1)
        await cluster.restart(2)
        await cluster.until(lambda: scene.isr("t") == set())
        assert cluster.leader("t") is None
        await cluster.restart(3)
        await cluster.until(lambda: cluster.leader("t") == 3)
        await cluster.until(lambda: scene.isr("t") == {1, 2, 3})
        await cluster.until(lambda: scene.marks("t")[3] == 3)
        assert values(await scene.read(3, "t")) == [b"to all", b"to two", b"to one"]
        decisions = cluster.controller.parts.controller.decisions.of(TopicPartition("t", 0))
        assert any(f"({How.LAST_KNOWN})" in decision.evidence for decision in decisions)

    play(scenario, 3, {**MIN_ISR, "log.flush.policy": "os"})
