"""Replicas are compacted each by itself: what one has lost to it, another may still have."""

from ottla.record.builder import BatchBuilder
from ottla.record.reader import batches, records
from tests.integration.broker.broker_client import produce, produced

from .scenes import play

COMPACT = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "1",
    "internal_segment_bytes": "300",
}
KEYS = 4


async def write(scene, broker_id, number):
    """One record in a batch of its own, acknowledged by all in sync."""
    builder = BatchBuilder()
    builder.append(1_000, b"key%d" % (number % KEYS), b"value%d" % number)
    request = produce("a", bytes(builder.build()), acks=-1, timeout_ms=20_000)
    answer = produced(await (await scene.client(broker_id)).call(request, 11))
    assert answer.error_code == 0


async def compact(scene, broker_id):
    cleaner = scene.cluster.brokers[broker_id].parts.cleaner
    partition = scene.partition(broker_id, "a")
    cleaner.clean_now(partition)
    await scene.cluster.until(lambda: cleaner.status_of(partition).wanted_end < 0)
    assert not cleaner.status_of(partition).failure


def found(scene, broker_id):
    """(offset, key, value) of all records of a replica."""
    content = scene.log(broker_id, "a")
    return [
        (record.offset, record.key, record.value)
        for position, header in batches(content)
        for record in records(content, position, header)
    ]


def latest(scene, broker_id):
    return {key: (offset, value) for offset, key, value in found(scene, broker_id)}


def test_a_follower_catches_up_over_what_its_leader_has_compacted():
    """It was away, and is sent what is left; its offsets are the leader's, and it can lead."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3, **COMPACT)
        for number in range(10):
            await write(scene, 1, number)
        await scene.cluster.kill(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        for number in range(10, 60):
            await write(scene, 1, number)
        await compact(scene, 1)
        assert len(found(scene, 1)) == KEYS
        assert len(found(scene, 2)) == 60
        await scene.cluster.restart(3)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        await scene.cluster.until(lambda: set(scene.ends("a").values()) == {60})
        assert latest(scene, 3) == latest(scene, 1) == latest(scene, 2)
        assert len(found(scene, 3)) < 20
        for gone in (1, 2):
            await scene.cluster.kill(gone)
        await scene.cluster.until(lambda: scene.cluster.leader("a") == 3)
        await write(scene, 3, 60)
        assert latest(scene, 3)[b"key0"] == (60, b"value60")

    play(scenario, settings={"min.insync.replicas": "1"})


def test_each_replica_is_compacted_where_it_is():
    """Leader and followers alike, and the bytes may differ while the last values do not."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3, **COMPACT)
        for number in range(30):
            await write(scene, 1, number)
        await scene.cluster.until(lambda: set(scene.marks("a").values()) == {30})
        for broker_id in (2, 3, 1):
            await compact(scene, broker_id)
            assert len(found(scene, broker_id)) == KEYS
        await write(scene, 1, 30)
        await scene.cluster.until(lambda: set(scene.ends("a").values()) == {31})
        assert latest(scene, 1) == latest(scene, 2) == latest(scene, 3)

    play(scenario)
