"""AlterReplicaLogDirs and DescribeLogDirs: replicas move between directories, and it shows."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.handlers.log_dirs import AlterReplicaLogDirs, DescribeLogDirs
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.replication.throttles import Throttles
from ottla.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)

from .replica_world import SETTINGS, ask, play

TWO = {"log.dirs": "/a,/b", "cordoned.log.dirs": "/b"}


def moves_of(world):
    throttles = Throttles(BrokerSettings(SETTINGS), world.clock)
    return LogDirMoves(
        world.partitions,
        world.directories,
        throttles.moves,
        world.clock,
        world.runtime.spawn,
        world.removals,
    )


def alter(path, topic):
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])


def code_of(response):
    (topic,) = response.results
    (partition,) = topic.partitions
    return ErrorCode(partition.error_code)


def described(response):
    return {
        result.log_dir: [
            (topic.name, p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
            for topic in result.topics
            for p in topic.partitions
        ]
        for result in response.results
    }


def test_a_replica_goes_to_the_other_directory():
    """Answered at once; the copy takes the log's place when all of it is there."""

    async def scenario(world):
        partition = await world.host("t", 1)
        assert world.directories.home(partition.topic_partition).path == "/a"
        world.append(partition, b"x")
        moves = moves_of(world)
        describing = DescribeLogDirs(world.settings, moves, world.filesystem, world.directories)
        every = DescribeLogDirsRequest(topics=None)
        stands = ("t", 0, 69, 0, False)
        assert code_of(ask(AlterReplicaLogDirs(moves), alter("/b", "t"))) == ErrorCode.NONE
        assert described(ask(describing, every)) == {"/a": [stands], "/b": []}
        for _ in range(100):
            await world.turn()
        assert described(ask(describing, every)) == {"/a": [], "/b": [stands]}

    play(scenario, TWO)


def test_a_copy_is_told_as_a_future_replica_with_what_it_lacks():
    """Beside the log that is in use."""

    async def scenario(world):
        partition = await world.host("t", 1)
        world.append(partition, b"x")
        name, target = partition.topic_partition, world.directories.at("/b")
        target.futures[name] = world.directories.open_future(
            name, partition.topic_id, partition.config, target, 0, 0
        )
        handler = DescribeLogDirs(
            world.settings, moves_of(world), world.filesystem, world.directories
        )
        assert described(ask(handler, DescribeLogDirsRequest(topics=None))) == {
            "/a": [("t", 0, 69, 0, False)],
            "/b": [("t", 0, 0, 1, True)],
        }

    play(scenario, TWO)


def test_moves_that_cannot_begin_are_refused():
    """No such directory; no such replica, whose place is remembered nonetheless."""

    async def scenario(world):
        await world.host("t", 1)
        altering = AlterReplicaLogDirs(moves_of(world))
        assert code_of(ask(altering, alter("/c", "t"))) == ErrorCode.LOG_DIR_NOT_FOUND
        assert code_of(ask(altering, alter("/b", "u"))) == ErrorCode.REPLICA_NOT_AVAILABLE
        await world.host("u", 2)
        assert world.directories.home(TopicPartition("u", 0)).path == "/b"

    play(scenario, TWO)


def test_directories_are_described_with_the_partitions_asked_for():
    """A cordoned one says so; one that failed is told with the error alone."""

    async def scenario(world):
        await world.host("t", 1)
        handler = DescribeLogDirs(
            world.settings, moves_of(world), world.filesystem, world.directories
        )
        only_u = [DescribableLogDirTopic(topic="u", partitions=[0])]
        response = ask(handler, DescribeLogDirsRequest(topics=only_u))
        assert described(response) == {"/a": [], "/b": []}
        assert [result.is_cordoned for result in response.results] == [False, True]
        world.directories.at("/b").fail("its disk is gone")
        _, failed = ask(handler, DescribeLogDirsRequest(topics=None)).results
        assert (failed.log_dir, failed.error_code) == ("/b", ErrorCode.KAFKA_STORAGE_ERROR)
        assert failed.topics == []

    play(scenario, TWO)
