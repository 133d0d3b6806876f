"""OffsetLedger: what became of each offset of a range."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handlers.offset_ledger import OffsetLedger
from ottla.wire.messages.offset_ledger import OffsetLedgerRequest

from .replica_world import ask, play


def handler_of(world):
    return OffsetLedger(world.view, world.runtime, world.partitions)


def request(start, end=-1, topic="t"):
    return OffsetLedgerRequest(topic=topic, partition=0, start=start, end=end)


def test_each_offset_is_there_or_its_deletion_is_known():
    """Two of five were deleted on request; -1 is the high watermark."""

    async def scenario(world):
        partition = await world.host("t", 1)
        world.append(partition, b"a", b"b")
        world.append(partition, b"c", b"d", b"e")
        partition.advance_log_start(2)
        answer = await ask(handler_of(world), request(0))
        assert (answer.broker_id, answer.leader_epoch) == (1, 5)
        assert (answer.start, answer.end, answer.log_start_offset) == (0, 5, 2)
        assert (answer.data, answer.deleted, answer.lost) == (3, 2, 0)
        assert (answer.compacted, answer.unexplained) == (0, 0)
        assert [(one.start, one.end) for one in answer.deleted_by] == [(0, 2)]
        part = await ask(handler_of(world), request(3, 4))
        assert (part.data, part.deleted) == (1, 0)

    play(scenario)


def test_only_the_leader_accounts_and_only_for_what_was_there():
    """A follower, no such partition, offsets that never were."""

    async def scenario(world):
        world.append(await world.host("t", 1), b"a")
        await world.host("f", 2, leader=2, replicas=(1, 2))
        for body, code in (
            (request(0, topic="f"), ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (request(0, topic="u"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (request(0, 9), ErrorCode.OFFSET_OUT_OF_RANGE),
        ):
            with pytest.raises(OttlaError) as caught:
                await ask(handler_of(world), body)
            assert caught.value.code == code

    play(scenario)
