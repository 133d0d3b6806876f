"""Replicas that move between the log directories of their broker (KIP-113)."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.record.reader import batches
from ottla.storage.files.names import parse_future_folder
from ottla.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)

from .scenes import play, values

TWO = {"log.dirs": "/one,/two"}
NAME = TopicPartition("a", 0)


def homes(scene, broker_id):
    """Paths of the directories in which a broker has a folder of the partition."""
    filesystem = scene.cluster.brokers[broker_id].storage.filesystem
    return [path for path in ("/one", "/two") if str(NAME) in filesystem.listdir(path)]


def other(path):
    return {"/one": "/two", "/two": "/one"}[path]


async def alter(scene, broker_id, path, index=0, version=2):
    topics = [AlterReplicaLogDirTopic(name="a", partitions=[index])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = await (await scene.client(broker_id)).call(request, version)
    (topic,) = answer.results
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.partition_index) == ("a", index)
    return partition.error_code


async def described(scene, broker_id):
    """(path, whether it is a copy, lag) of each log of the topic."""
    answer = await (await scene.client(broker_id)).call(DescribeLogDirsRequest(topics=None), 4)
    return {
        (result.log_dir, partition.is_future_key, partition.offset_lag)
        for result in answer.results
        for topic in result.topics
        if topic.name == "a"
        for partition in topic.partitions
    }


def test_replica_moves_with_all_it_has():
    """Leader and follower: the same bytes in the other directory, and nothing left in the first."""

    async def scenario(scene):
        await scene.create("a", 1, 2, segment_bytes="1048576")
        for number in range(20):
            await scene.write(1, "a", b"%d" % number)
        for broker_id in (1, 2):
            (before,) = homes(scene, broker_id)
            assert await alter(scene, broker_id, other(before)) == ErrorCode.NONE
            await scene.cluster.until(lambda b=broker_id, p=before: homes(scene, b) == [other(p)])
            assert await described(scene, broker_id) == {(other(before), False, 0)}
        for number in range(20, 25):
            assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
        assert values(await scene.read(1, "a")) == [b"%d" % number for number in range(25)]
        assert stored(scene, 1) == stored(scene, 2)
        assert len(list(batches(stored(scene, 1)))) == 25

    play(scenario, 2, TWO)


def stored(scene, broker_id):
    """The bytes of the log, wherever it is."""
    filesystem = scene.cluster.brokers[broker_id].storage.filesystem
    (home,) = homes(scene, broker_id)
    folder = f"{home}/{NAME}"
    names = [name for name in filesystem.listdir(folder) if name.endswith(".log")]
    return b"".join(filesystem.read_bytes(f"{folder}/{name}") for name in sorted(names))


def test_producers_are_answered_while_their_partition_moves():
    """Nothing is refused, lost or doubled; deleted records stay deleted."""

    async def scenario(scene):
        await scene.create("a", 1)
        for number in range(5):
            await scene.write(1, "a", b"%d" % number, b"+")
        scene.partition(1, "a").advance_log_start(5)
        for _ in range(4):
            (before,) = homes(scene, 1)
            await alter(scene, 1, other(before))
            sent = [asyncio.create_task(scene.write(1, "a", b"x")) for _ in range(1)]
            for answer in await asyncio.gather(*sent):
                assert answer.error_code == ErrorCode.NONE
            await scene.cluster.until(lambda p=before: homes(scene, 1) == [other(p)])
        partition = scene.partition(1, "a")
        assert (partition.log_start_offset, partition.log_end_offset) == (5, 14)
        assert partition.high_watermark == 14

    play(scenario, 1, TWO)


def test_move_goes_on_after_a_restart():
    """The folder says that it is under way; what was copied is not copied again."""

    async def scenario(scene):
        await scene.create("a", 1)
        for number in range(10):
            await scene.write(1, "a", b"%d" % number)
        broker = scene.cluster.brokers[1]
        (before,) = homes(scene, 1)
        moves = broker.parts.replication.moves
        partition = scene.partition(1, "a")
        target = broker.storage.log_directories.at(other(before))
        # As far as a broker comes that is killed between copying and taking the place.
        await moves._open(partition, target)
        assert {name for name, _, _ in await described(scene, 1)} == {"/one", "/two"}
        assert (other(before), True, 10) in await described(scene, 1)
        await scene.cluster.kill(1)
        names = broker.storage.filesystem.listdir(other(before))
        assert NAME in [parse_future_folder(name) for name in names]
        await scene.cluster.restart(1)
        await scene.cluster.until(lambda: homes(scene, 1) == [other(before)])
        names = scene.cluster.brokers[1].storage.filesystem.listdir(other(before))
        assert NAME not in [parse_future_folder(name) for name in names]
        await scene.cluster.until(lambda: scene.partition(1, "a").high_watermark == 10)
        assert values(await scene.read(1, "a")) == [b"%d" % number for number in range(10)]

    play(scenario, 1, TWO)


def test_crash_between_the_two_renames_loses_nothing():
    """Both folders bear the name: one of them is kept, under another name."""

    async def scenario(scene):
        await scene.create("a", 1)
        for number in range(10):
            await scene.write(1, "a", b"%d" % number)
        broker = scene.cluster.brokers[1]
        (before,) = homes(scene, 1)
        target = broker.storage.log_directories.at(other(before))
        copy = await broker.parts.replication.moves._open(scene.partition(1, "a"), target)
        partition = scene.partition(1, "a")
        copy.append_as_follower(stored(scene, 1), 0)
        assert copy.log_end_offset == partition.log_end_offset
        # What it returns would set the old folder aside.
        broker.storage.log_directories.move(NAME, target)
        assert homes(scene, 1) == ["/one", "/two"]
        await scene.cluster.kill(1)
        await scene.cluster.restart(1)
        await scene.cluster.until(lambda: scene.partition(1, "a").high_watermark == 10)
        assert len(homes(scene, 1)) == 1
        assert values(await scene.read(1, "a")) == [b"%d" % number for number in range(10)]

    play(scenario, 1, TWO)


def test_what_cannot_be_moved_is_told():
    """An unknown directory, a replica that is elsewhere, one that is there already."""

    async def scenario(scene):
        await scene.create("a", 1)
        (home,) = homes(scene, 1)
        assert await alter(scene, 1, "/three") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await alter(scene, 1, home, index=7) == ErrorCode.REPLICA_NOT_AVAILABLE
        assert await alter(scene, 2, home) == ErrorCode.REPLICA_NOT_AVAILABLE
        assert await alter(scene, 1, home, version=1) == ErrorCode.NONE
        assert await described(scene, 1) == {(home, False, 0)}

    play(scenario, 2, TWO)


def test_replica_that_comes_later_goes_where_it_was_told_to():
    """What kafka-reassign-partitions does before it reassigns."""

    async def scenario(scene):
        assert await alter(scene, 1, "/two") == ErrorCode.REPLICA_NOT_AVAILABLE
        await scene.create("a", 1)
        assert homes(scene, 1) == ["/two"]

    play(scenario, 1, TWO)


def test_replica_of_a_log_that_begins_inside_a_batch_can_be_made():
    """Records are deleted up to the middle of a batch; a new replica takes the whole batch."""

    async def scenario(scene):
        await scene.create("a", 1, 2)
        await scene.write(1, "a", b"0", b"1", b"2")
        await scene.cluster.kill(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1})
        await scene.write(1, "a", b"3", b"4", b"5")
        await scene.write(1, "a", b"6")
        scene.partition(1, "a").advance_log_start(4)
        await scene.cluster.restart(2)
        await scene.cluster.until(lambda: scene.isr("a") == {1, 2})
        follower = scene.partition(2, "a")
        assert (follower.log_start_offset, follower.log_end_offset) == (4, 7)

    play(scenario, 2)
