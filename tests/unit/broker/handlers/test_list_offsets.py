"""ListOffsets: by time, and the ends of the log."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.list_offsets import ListOffsets
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

from .replica_world import ask, call, play


def request(timestamp, topic="t", epoch=-1, count=1):
    wanted = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch
    )
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted] * count)]
    )


def outcomes(response):
    (topic,) = response.topics
    return [(ErrorCode(p.error_code), p.timestamp, p.offset) for p in topic.partitions]


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (-1, 3)),
        (-2, (-1, 1)),
        (-3, (3_000, 1)),
        (-4, (-1, 1)),
        (-5, (-1, -1)),
        (1_500, (3_000, 1)),
        (3_001, (-1, -1)),
    ],
)
def test_an_offset_is_found_by_time_or_by_name(timestamp, found):
    """Records at 1000, 3000 and 2000 ms, of which the first is deleted."""

    async def scenario(world):
        partition = await world.host("t", 1)
        for at_ms in (1_000, 3_000, 2_000):
            world.append(partition, b"x", timestamps=[at_ms])
        partition.advance_log_start(1)
        response = await call(ListOffsets(world.partitions, world.runtime), request(timestamp))
        assert outcomes(response) == [(ErrorCode.NONE, *found)]

    play(scenario, {"log.message.timestamp.before.max.ms": str(2**63 - 1)})


def test_what_cannot_be_answered_is_refused_by_itself():
    """No such partition, an epoch that is over, one named twice, a meaning of later versions."""

    async def scenario(world):
        await world.host("t", 1, epoch=5)
        handler = ListOffsets(world.partitions, world.runtime)
        for response, code in (
            (await call(handler, request(-1, topic="u")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (await call(handler, request(-1, epoch=4)), ErrorCode.FENCED_LEADER_EPOCH),
            (await call(handler, request(-3), 6), ErrorCode.UNSUPPORTED_VERSION),
        ):
            assert outcomes(response) == [(code, -1, -1)]
        twice = outcomes(await call(handler, request(-1, count=2)))
        assert twice == [(ErrorCode.INVALID_REQUEST, -1, -1)] * 2

    play(scenario)


def test_others_are_served_between_two_lookups_by_time():
    """Each may expand megabytes, and a request may ask for ten thousand partitions."""

    async def scenario(world):
        for number in range(3):
            partition = await world.host(f"t{number}", 1)
            world.append(partition, b"x", timestamps=[1_000])
        turns = 0

        async def serve_others():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        others = asyncio.create_task(serve_others())
        wanted = ListOffsetsPartition(partition_index=0, timestamp=500)
        topics = [ListOffsetsTopic(name=f"t{number}", partitions=[wanted]) for number in range(3)]
        body = ListOffsetsRequest(replica_id=-1, topics=topics)
        response = await call(ListOffsets(world.partitions, world.runtime), body)
        others.cancel()
        assert [topic.partitions[0].offset for topic in response.topics] == [0, 0, 0]
        assert turns >= 3

    play(scenario, {"log.message.timestamp.before.max.ms": str(2**63 - 1)})


@pytest.mark.parametrize("timestamp", [-1, -2, -4, -5])
def test_offsets_that_need_no_wait_are_answered_at_once(timestamp):
    """librdkafka asks for each of ten thousand partitions by a request: without a task for each."""

    async def scenario(world):
        world.append(await world.host("t", 1), b"x")
        response = ask(ListOffsets(world.partitions, world.runtime), request(timestamp))
        assert outcomes(response)[0][0] == ErrorCode.NONE

    play(scenario)
