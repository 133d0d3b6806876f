"""DeleteRecords: the start moves, the answer waits for the followers that live."""

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.deletions import DeleteRecords
from ottla.storage.files.checkpoint import decode_offsets
from ottla.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

from .replica_world import begin, call, play


def request(topic, offset, timeout_ms=1_000):
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=timeout_ms
    )


def handler(world):
    return DeleteRecords(world.view, world.runtime, world.partitions, world.own, world.directories)


def outcome(response):
    (topic,) = response.topics
    (partition,) = topic.partitions
    return ErrorCode(partition.error_code), partition.low_watermark


def test_the_start_moves_to_the_offset():
    """Answered at once where no other replica lives; -1 is the high watermark."""

    async def scenario(world):
        partition = await world.host("t", 1)
        world.append(partition, b"a", b"b", b"c")
        assert outcome(await call(handler(world), request("t", 2))) == (ErrorCode.NONE, 2)
        assert partition.log_start_offset == 2
        assert outcome(await call(handler(world), request("t", -1))) == (ErrorCode.NONE, 3)

    play(scenario)


def test_what_cannot_be_deleted_is_refused():
    """Beyond the high watermark, in a compacted topic, in one of the broker's, and in none."""

    async def scenario(world):
        world.append(await world.host("t", 1), b"a")
        await world.host("compacted", 2, configs={"cleanup.policy": "compact"})
        await world.host("__consumer_offsets", 3)
        for topic, offset, code in (
            ("t", 2, ErrorCode.OFFSET_OUT_OF_RANGE),
            ("compacted", 0, ErrorCode.POLICY_VIOLATION),
            ("__consumer_offsets", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ):
            assert outcome(await call(handler(world), request(topic, offset))) == (code, -1)

    play(scenario)


def followed(world, partition):
    """Let broker 2 hold all records of the partition, from offset 0 on."""
    world.roles.on_follower_fetch(partition, 2, 2, 1, partition.log_end_offset, 5, 5)
    partition.on_follower_start(2, 0)


def test_it_waits_for_the_start_of_a_follower_that_lives():
    """The least of all starts is the answer, once that is as wanted."""

    async def scenario(world):
        world.know(1, 2)
        partition = await world.host("t", 1, replicas=(1, 2))
        world.append(partition, b"a", b"b")
        followed(world, partition)
        assert partition.high_watermark == 2
        asked = await begin(handler(world), request("t", 2))
        await world.turn()
        assert asked.answers() == []
        partition.on_follower_start(2, 2)
        await world.turn()
        (answer,) = asked.answers()
        assert outcome(answer) == (ErrorCode.NONE, 2)
        assert len(world.runtime.purgatory) == 0

    play(scenario)


def test_a_leader_that_steps_down_ends_the_wait():
    """NOT_LEADER_OR_FOLLOWER: the next leader is to be asked."""

    async def scenario(world):
        world.know(1, 2)
        partition = await world.host("t", 1, replicas=(1, 2))
        world.append(partition, b"a", b"b")
        followed(world, partition)
        asked = await begin(handler(world), request("t", 2))
        await world.turn()
        assert asked.answers() == []
        await world.host("t", 1, leader=2, replicas=(1, 2), epoch=6)
        await world.turn()
        (answer,) = asked.answers()
        assert outcome(answer)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER

    play(scenario)


def test_the_start_is_on_the_disk_when_it_is_answered():
    """A broker that is killed then does not serve the deleted records again."""

    async def scenario(world):
        partition = await world.host("t", 1)
        world.append(partition, b"a", b"b", b"c")
        assert outcome(await call(handler(world), request("t", 2))) == (ErrorCode.NONE, 2)
        home = world.directories.home(partition.topic_partition)
        kept = decode_offsets(
            home.filesystem.read_bytes(f"{home.path}/log-start-offset-checkpoint")
        )
        assert kept == {partition.topic_partition: 2}

    play(scenario)
