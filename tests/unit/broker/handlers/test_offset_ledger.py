"""OffsetLedger: what became of each offset of a range."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handlers.offset_ledger import OffsetLedger
from ottla.security.principal import Principal
from ottla.wire.messages.offset_ledger import OffsetLedgerRequest

from .replica_world import Line, ask, begin, play


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


def line_of(name):
    """A connection of that user."""
    line = Line(None)
    line.principal = Principal("User", name)
    return line


def test_a_user_has_one_walk_at_a_time_and_others_need_not_wait_for_it():
    """A walk takes a thread of the broker; the next of the same user comes after it."""

    async def scenario(world):
        world.append(await world.host("t", 1), b"a")
        handler = handler_of(world)
        alice, bob = line_of("alice"), line_of("bob")
        # A walk of alice's that is under way.
        assert handler.turns.take(alice.principal, "walk", lambda: None)
        waiting = asyncio.ensure_future(begin(handler, request(0), line=alice))
        answered = await begin(handler, request(0), line=bob)
        assert [one.data for one in answered.answers()] == [1]
        assert not waiting.done()
        handler.turns.leave("walk")
        assert [one.data for one in (await waiting).answers()] == [1]
        assert handler.turns.begun == 0

    play(scenario)


def test_no_log_is_walked_for_a_client_that_has_left():
    """It waited for its turn; its place is another's."""

    async def scenario(world):
        world.append(await world.host("t", 1), b"a")
        handler = handler_of(world)
        alice = line_of("alice")
        assert handler.turns.take(alice.principal, "walk", lambda: None)
        waiting = asyncio.ensure_future(begin(handler, request(0), line=alice))
        await asyncio.sleep(0)
        alice.closed = True
        handler.turns.leave("walk")
        (answer,) = (await waiting).answers()
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert handler.turns.begun == 0

    play(scenario)
