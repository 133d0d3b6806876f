"""Throttled replication (KIP-73): never faster than allowed, and nobody in sync is held back."""

import asyncio

import pytest

from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.broker.configs.configs import ResourceType
from ottla.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

from .scenes import play

LEADER = "leader.replication.throttled"
FOLLOWER = "follower.replication.throttled"
BATCH = 20_000
PORTION_S = 0.1


async def fall_behind(scene, count, *topics):
    """Broker 2 dies, and broker 1 alone gets `count` batches for each topic."""
    await scene.cluster.kill(2)
    for topic in topics:
        await scene.cluster.until(lambda topic=topic: scene.isr(topic) == {1})
        for _ in range(count):
            assert (await scene.write(1, topic, b"x" * BATCH)).error_code == 0


async def alter(scene, broker_id, kind, name, setting, value):
    """Set it, or take it back for None, as a client would of that broker."""
    operation = AlterOperation.DELETE if value is None else AlterOperation.SET
    await scene.cluster.brokers[broker_id].parts.configs.configs.alter(
        kind, name, [Alteration(setting, operation, value)], validate_only=False
    )


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_a_replica_catches_up_no_faster_than_the_rate(side):
    """400 KB at 200 KB/s take two seconds, but for the first portion and the last batch."""

    async def scenario(scene):
        await scene.create("a", 1, 2, **{f"{side}.replicas".replace(".", "_"): "*"})
        await fall_behind(scene, 20, "a")
        size = len(scene.log(1, "a"))
        began = asyncio.get_running_loop().time()
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        took_s = asyncio.get_running_loop().time() - began
        assert size >= 20 * BATCH
        assert took_s >= (size - 1.1 * BATCH) / 200_000 - PORTION_S
        assert scene.log(1, "a") == scene.log(2, "a")

    play(scenario, 2, {f"{side}.rate": "200000", "replica.fetch.max.bytes": str(BATCH)})


def test_who_is_in_sync_is_not_slowed_and_does_not_count():
    """A byte a second for everything: acks=all is as ever, for days' worth of it."""

    async def scenario(scene):
        stars = dict.fromkeys(
            ("leader_replication_throttled_replicas", "follower_replication_throttled_replicas"),
            "*",
        )
        await scene.create("a", 1, 2, min_insync_replicas="2", **stars)
        for _ in range(10):
            assert (await scene.write(1, "a", b"x" * BATCH)).error_code == 0
        assert scene.ends("a") == {1: 10, 2: 10}

    play(scenario, 2, {f"{LEADER}.rate": "1", f"{FOLLOWER}.rate": "1"})


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_only_what_is_named_is_throttled(side):
    """One topic is held back, another of the same brokers not; and a changed rate holds at once."""

    async def scenario(scene):
        throttled = 1 if side == LEADER else 2
        named = {f"{side}.replicas".replace(".", "_"): f"0:{throttled}"}
        elsewhere = {f"{side}.replicas".replace(".", "_"): f"0:{3 - throttled},1:{throttled}"}
        await scene.create("named", 1, 2, **named)
        await scene.create("elsewhere", 1, 2, **elsewhere)
        await fall_behind(scene, 5, "named", "elsewhere")
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: scene.isr("elsewhere") == {1, 2})
        assert scene.isr("named") == {1}
        # Acknowledgements of the others go on over the same connection.
        assert (await scene.write(1, "elsewhere", b"y")).error_code == 0
        assert scene.isr("named") == {1}
        await alter(scene, throttled, ResourceType.BROKER, "", f"{side}.rate", str(10**9))
        await scene.cluster.until(lambda: scene.isr("named") == {1, 2})

    play(scenario, 2, {f"{side}.rate": "1"})


def test_a_throttle_can_be_taken_from_a_topic_while_it_holds():
    """The list is emptied, and the replica catches up."""

    async def scenario(scene):
        await scene.create("a", 1, 2, leader_replication_throttled_replicas="*")
        await fall_behind(scene, 5, "a")
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: 2 in scene.cluster.brokers and 2 in scene.ends("a"))
        assert scene.isr("a") == {1}
        await alter(scene, 1, ResourceType.TOPIC, "a", f"{LEADER}.replicas", None)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})

    play(scenario, 2, {f"{LEADER}.rate": "1"})


def test_a_move_between_log_directories_keeps_to_its_rate():
    """replica.alter.log.dirs.io.max.bytes.per.second: what waits goes on when it is raised."""

    async def scenario(scene):
        await scene.create("a", 1)
        for _ in range(150):
            await scene.write(1, "a", b"x" * BATCH)
        broker = scene.cluster.brokers[1]
        (home,) = [d for d in broker.storage.log_directories.online if d.logs]
        target = next(d for d in broker.storage.log_directories.online if d is not home)
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=target.path,
                    topics=[AlterReplicaLogDirTopic(name="a", partitions=[0])],
                )
            ]
        )
        await (await scene.client(1)).call(request, 2)
        await scene.cluster.until(lambda: target.futures)
        (copy,) = target.futures.values()
        await scene.cluster.until(lambda: copy.log_end_offset > 0)
        # One step of a MiB is paid for with hours.
        assert copy.log_end_offset < 60
        name = "replica.alter.log.dirs.io.max.bytes.per.second"
        await alter(scene, 1, ResourceType.BROKER, "", name, str(10**9))
        await scene.cluster.until(lambda: target.logs)

    play(
        scenario,
        1,
        {
            "log.dirs": "/one,/two",
            "replica.alter.log.dirs.io.max.bytes.per.second": "100",
        },
    )
