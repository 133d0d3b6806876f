"""Leaders that go: what is acknowledged stays, what is not is cut by epoch."""

import asyncio
from random import Random

from ottla.base.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

from .scenes import play, values


async def writable(scene, topic, besides=()):
    """The broker that leads by now and takes records."""
    found = []

    def is_led():
        found[:] = [
            broker_id
            for broker_id in scene.ends(topic)
            if broker_id not in besides and scene.partition(broker_id, topic).closed is None
        ]
        return bool(found)

    await scene.cluster.until(is_led)
    return found[0]


def test_acknowledged_records_outlive_their_leader():
    """P24: with three replicas two may go, one after the other (P21)."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        written = []
        for gone in (1, 2):
            leader = await writable(scene, "a")
            for number in range(5):
                value = b"%d-%d" % (gone, number)
                assert (await scene.write(leader, "a", value)).error_code == ErrorCode.NONE
                written.append(value)
            await scene.cluster.kill(leader)
        leader = await writable(scene, "a")
        await scene.cluster.until(lambda: scene.marks("a")[leader] == 10)
        assert values(await scene.read(leader, "a")) == written

    play(scenario, 3)


def test_tail_nobody_acknowledged_is_cut_by_epoch():
    """P20: the old leader drops what the new one never had, and ends byte for byte like it.

    P23: it follows from its own end, and the new leader commits by what followers fetch of it.
    """

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        await scene.write(1, "a", b"all")
        old = scene.partition(1, "a")
        # The followers still live, and are told nothing more: what comes now is the leader's own.
        for broker_id in (2, 3):
            scene.cluster.brokers[broker_id].parts.replication.close()
        await scene.write(1, "a", b"mine", acks=1)
        assert scene.ends("a") == {1: 2, 2: 1, 3: 1}
        assert set(old.image.isr) == {1, 2, 3}
        await scene.cluster.kill(1)
        leader = await writable(scene, "a")
        assert (await scene.write(leader, "a", b"theirs", b"too")).error_code == ErrorCode.NONE
        await scene.cluster.restart(1)
        await scene.cluster.until(lambda: scene.ends("a") == {1: 3, 2: 3, 3: 3})
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2, 3})
        assert scene.log(1, "a") == scene.log(2, "a") == scene.log(3, "a")
        assert values(await scene.read(leader, "a")) == [b"all", b"theirs", b"too"]

    play(scenario, 3)


def test_group_commit_outlives_a_power_cut_everywhere():
    """With group commit, what was acknowledged is on all disks: the lights may go out at once."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        for number in range(10):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        disks = {i: broker.storage.filesystem for i, broker in scene.cluster.brokers.items()}
        for broker_id, disk in disks.items():
            await scene.cluster.kill(broker_id)
            disk.crash(Random(broker_id))
        for broker_id in disks:
            await scene.cluster.restart(broker_id)
        leader = await writable(scene, "a")
        await scene.cluster.until(lambda: scene.marks("a")[leader] == 10)
        assert values(await scene.read(leader, "a")) == [b"%d" % n for n in range(10)]

    play(scenario)


def test_who_asks_the_wrong_broker_is_told_the_right_one():
    """KIP-951: the leader, and how to reach it, in the answer itself."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        answer = await scene.write(2, "a", b"x")
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.current_leader.leader_id == 1
        assert answer.current_leader.leader_epoch == scene.partition(1, "a").leader_epoch
        answer = await scene.read(2, "a", version=9)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await latest(scene, 2, "a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(scenario, 2)


async def latest(scene, broker_id, topic, version=5):
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    answer = await (await scene.client(broker_id)).call(request, version)
    return answer.topics[0].partitions[0]


def test_latest_offset_waits_until_the_new_leader_knows_it():
    """R-10: an older leader may have shown more than this one has committed yet (KIP-207)."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"x")
        leader = scene.partition(1, "a").leader
        assert (await latest(scene, 1, "a")).offset == 1
        leader.term.epoch_start = 2  # As if it had come to office with a record more.
        assert (await latest(scene, 1, "a")).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
        assert (await latest(scene, 1, "a", 4)).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        await scene.write(1, "a", b"y")
        assert (await latest(scene, 1, "a")).offset == 2

    play(scenario, 2)


def test_deleted_records_are_deleted_on_followers():
    """The log start travels with the answers to fetches."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        for number in range(4):
            await scene.write(1, "a", b"%d" % number)
        scene.partition(1, "a").advance_log_start(3)
        await scene.write(1, "a", b"next")
        await scene.cluster.until(lambda: scene.partition(2, "a").log_start_offset == 3)

    play(scenario, 2)


def test_follower_left_behind_by_retention_begins_anew():
    """What it would need to go on is deleted at the leader: it takes over the leader's start."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"0")
        await scene.cluster.kill(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1})
        for number in range(1, 5):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        scene.partition(1, "a").advance_log_start(4)
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        follower = scene.partition(2, "a")
        assert (follower.log_start_offset, follower.log_end_offset) == (4, 5)

    play(scenario, 2)


def test_topic_that_is_deleted_leaves_no_replica():
    """StopReplica with deletion, at leader and follower."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"x")
        topics = scene.cluster.brokers[1].parts.metadata.topics
        (outcome,) = await topics.delete([scene.cluster.brokers[1].image.topics["a"]])
        assert outcome.error is None
        await scene.cluster.until(lambda: scene.ends("a") == {})

    play(scenario, 2)


def test_committed_offsets_survive_their_coordinator():
    """P11: the groups are loaded where `__consumer_offsets` is led now."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        first = await coordinator(scene)
        await commit(scene, first, 7)
        assert await committed(scene, first) == 7
        await scene.cluster.kill(first)
        second = await coordinator(scene, besides=first)
        assert await committed(scene, second) == 7
        await commit(scene, second, 8)
        assert await committed(scene, second) == 8
        await scene.cluster.restart(first)
        offsets = scene.cluster.brokers[first].partitions
        await scene.cluster.until(
            lambda: (found := offsets.find("__consumer_offsets", 0)) and found.follower is not None
        )
        refused = await fetch_offset(scene, first)
        assert refused.error_code == ErrorCode.NOT_COORDINATOR

    # Who comes back is not made leader again behind our back.
    settings = {"offsets.topic.num.partitions": "1", "auto.leader.rebalance.enable": "false"}
    play(scenario, 3, settings)


async def coordinator(scene, besides=None):
    """Who coordinates group `g`, as soon as somebody does."""
    while True:
        for broker_id in list(scene.cluster.brokers):
            request = FindCoordinatorRequest(key="g", key_type=0)
            answer = await (await scene.client(broker_id)).call(request, 3)
            if answer.error_code == ErrorCode.NONE and answer.node_id != besides:
                return answer.node_id


async def commit(scene, broker_id, offset):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="a", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", topics=[topic])
    while True:
        answer = await (await scene.client(broker_id)).call(request, 7)
        code = answer.topics[0].partitions[0].error_code
        if code == ErrorCode.NONE:
            return
        assert code in (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )


async def fetch_offset(scene, broker_id):
    topic = OffsetFetchRequestTopic(name="a", partition_indexes=[0])
    request = OffsetFetchRequest(group_id="g", topics=[topic])
    return await (await scene.client(broker_id)).call(request, 7)


async def committed(scene, broker_id):
    while True:
        answer = await fetch_offset(scene, broker_id)
        if answer.error_code == ErrorCode.NONE:
            return answer.topics[0].partitions[0].committed_offset
        assert answer.error_code in (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_COORDINATOR,
        )


def test_producer_that_waits_is_sent_on_at_the_demotion():
    """KIP-951: who waits for followers is told the new leader, on the usual way and the general."""

    async def scenario(scene):
        await scene.create("a", 1, 2, 3)
        for _ in range(2):
            # The second of them is the one whose bytes are known by now.
            assert (await scene.write(1, "a", b"x")).error_code == ErrorCode.NONE
        partition = scene.partition(1, "a")
        image = partition.image
        for broker_id in (2, 3):
            scene.cluster.brokers[broker_id].parts.replication.close()
        waiting = asyncio.create_task(scene.write(1, "a", b"y"))
        await scene.cluster.until(lambda: len(partition._acks) == 1)
        moved = image._replace(leader=2, leader_epoch=image.leader_epoch + 1)
        scene.cluster.brokers[1].parts.replication.roles.become(partition, moved)
        answer = await waiting
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.current_leader.leader_id == 2
        assert answer.current_leader.leader_epoch == image.leader_epoch + 1

    play(scenario, 3)
