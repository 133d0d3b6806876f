"""ReaderLag: where readers are in a partition, for the metrics of their groups."""

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.log_cleaning import ReaderLag
from ottla.broker.lags.reader_place import Places
from ottla.record.builder import build_batch
from ottla.record.header import read_header
from ottla.wire.messages.log_cleaning import ReaderLagRequest, ReaderLagTopic, ReaderOffset

from .replica_world import ask, play

HOUR = 3_600_000


async def places(world, *readers, topic="t"):
    """The places of (offset, group)."""
    asked = [ReaderOffset(partition=0, offset=at, group_id=group) for at, group in readers]
    request = ReaderLagRequest(topics=[ReaderLagTopic(name=topic, readers=asked)])
    handler = ReaderLag(world.runtime, world.partitions, Places())
    (result,) = (await ask(handler, request)).topics
    return result.places


def append(world, partition, *, at_ms):
    batch = build_batch([at_ms, at_ms], [None, None], [b"a", b"b"])
    partition.append(batch, read_header(batch), world.clock.now_ms())


def test_a_reader_hears_since_when_it_is_late_and_when_it_loses_a_record():
    """Two batches, a minute apart: the second is deleted an hour after its time."""

    async def scenario(world):
        partition = await world.host("t", 1, configs={"retention.ms": str(HOUR)})
        began_ms = world.clock.now_ms()
        append(world, partition, at_ms=began_ms)
        partition.log.roll(began_ms)
        world.clock.advance(60_000)
        append(world, partition, at_ms=world.clock.now_ms())
        partition.flush_soon()
        await world.flusher.settle()
        world.clock.advance(30_000)
        first, second, done = await places(world, (0, "g"), (3, "g"), (4, "g"))
        assert (first.log_start_offset, first.high_watermark) == (0, 4)
        assert (first.since_ms, first.left_ms) == (began_ms, HOUR - 90_000)
        assert (second.since_ms, second.left_ms) == (began_ms + 60_000, HOUR - 30_000)
        assert (done.high_watermark, done.since_ms, done.left_ms) == (4, -1, -1)

    play(scenario)


def test_a_reader_below_the_start_is_late_since_the_first_record_left():
    async def scenario(world):
        partition = await world.host("t", 1)
        append(world, partition, at_ms=1_000)
        append(world, partition, at_ms=2_000)
        partition.flush_soon()
        await world.flusher.settle()
        partition.advance_log_start(2)
        (place,) = await places(world, (0, "g"))
        assert (place.log_start_offset, place.since_ms) == (2, 2_000)

    play(scenario)


def test_what_was_found_of_a_record_is_counted_down_and_found_anew_in_time():
    """Within half a minute nothing is read again; the time left goes on."""

    async def scenario(world):
        partition = await world.host("t", 1, configs={"retention.ms": str(HOUR)})
        append(world, partition, at_ms=world.clock.now_ms())
        partition.flush_soon()
        await world.flusher.settle()
        known = Places()
        clock = world.clock
        assert known.find(partition, 0, "g", clock.now_ms()).left_ms == HOUR
        clock.advance(10_000)
        assert known.find(partition, 0, "g", clock.now_ms()).left_ms == HOUR - 10_000
        partition.log.update_config(partition.config.__class__(retention_ms=2 * HOUR))
        assert known.find(partition, 0, "g", clock.now_ms()).left_ms == HOUR - 10_000
        clock.advance(20_000)
        assert known.find(partition, 0, "g", clock.now_ms()).left_ms == 2 * HOUR - 30_000

    play(scenario)


def test_each_reader_gets_its_own_error():
    """A partition that another broker leads, and one that is unknown."""

    async def scenario(world):
        await world.host("t", 1, leader=2, replicas=(1, 2))
        (follows,) = await places(world, (0, "g"))
        assert follows.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        (unknown,) = await places(world, (0, "g"), topic="u")
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(scenario)
