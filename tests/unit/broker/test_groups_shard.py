"""Laws of the shell around a coordinator: nobody is told what a crash could take back."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from tests.unit.broker.groups_world import COMMIT_TIMEOUT_MS, World, on_loop

MEMBER = "c-00000000-0000-0000-0000-000000000001"


def _code(answer: object) -> int:
    """The error of an OffsetCommit response."""
    code: int = answer.topics[0].partitions[0].error_code  # type: ignore[attr-defined]  # By shape.
    return code


def test_commit_is_answered_when_it_is_committed() -> None:
    """Applied at the append, answered at the high watermark."""
    world = World()
    request = world.commit(7)
    assert world.committed() == 7
    assert request.answer is None
    world.partition.commit()
    assert _code(request.answer) == ErrorCode.NONE


def test_nobody_reads_what_is_not_committed() -> None:
    """Even an answer that wrote nothing waits for everything that was written before it."""
    world = World()
    world.commit(7)
    request = world.heartbeat("stranger", 1)
    assert request.answer is None
    world.partition.commit()
    assert request.answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("stranger", 1).answer is not None


def test_share_is_told_when_the_assignment_is_committed() -> None:
    """A member must not read partitions that another generation may get."""
    world = World()
    joined = world.join()
    assert joined.answer.member_id == MEMBER
    synced = world.sync(MEMBER, 1)
    assert synced.answer is None
    world.partition.commit()
    assert synced.answer.assignment == b"all"


def test_answer_does_not_wait_for_ever() -> None:
    """After `offsets.commit.timeout.ms` the client may look for another coordinator."""
    world = World()
    request = world.commit(7)
    world.advance(COMMIT_TIMEOUT_MS - 1)
    assert request.answer is None
    world.advance(1)
    assert _code(request.answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.partition.commit()  # Too late: it is not answered twice.


def test_lost_leadership_is_told_to_those_who_wait() -> None:
    """As Kafka tells it."""
    world = World()
    request = world.commit(7)
    world.partition.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert _code(request.answer) == ErrorCode.NOT_COORDINATOR


def test_commit_that_cannot_be_appended_changes_nothing() -> None:
    """Decided, not applied; the group goes on."""
    world = World()
    world.commit(7)
    world.partition.fails_with = ErrorCode.KAFKA_STORAGE_ERROR
    request = world.commit(8)
    assert _code(request.answer) == ErrorCode.NOT_COORDINATOR
    assert world.committed() == 7


def test_commit_that_is_too_large_is_refused_by_its_name() -> None:
    """A retry would not help."""
    world = World()
    world.partition.fails_with = ErrorCode.MESSAGE_TOO_LARGE
    assert _code(world.commit(7).answer) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE


def test_assignment_that_cannot_be_appended_unloads_and_replays() -> None:
    """The members' soft state cannot be taken back, so the coordinator is rebuilt from the log."""

    async def scenario() -> None:
        world = World()
        world.commit(7)
        joined = world.join()
        world.partition.commit()
        member_id = joined.answer.member_id
        world.partition.fails_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
        refused = world.sync(member_id, 1)
        assert refused.answer.error_code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(OttlaError) as loading:
            world.heartbeat(member_id, 1)
        assert loading.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.partition.fails_with = None
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.committed() == 7
        assert world.heartbeat(member_id, 1).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    on_loop(scenario)


def test_members_that_wait_are_told_when_the_shard_is_given_up() -> None:
    """They look for the new coordinator at once."""
    world = World()
    world.join()
    world.sync(MEMBER, 1)
    world.partition.commit()
    waits = world.join()
    assert waits.answer is None
    world.shard.close(ErrorCode.NOT_COORDINATOR)
    assert waits.answer.error_code == ErrorCode.NOT_COORDINATOR
    assert world.purgatory.pending() == 0


def test_many_records_are_cut_into_batches_that_fit() -> None:
    """The topic's largest batch is not exceeded; a replay sees them all."""

    async def scenario() -> None:
        world = World()
        world.commit(7, metadata="x" * 1_000, partitions=30)
        batches = world.partition.log.batches
        assert len(batches) == 4
        assert max(map(len, batches)) <= 10_000
        again = world.new_shard()
        await again.load()
        assert again.coordinator is not None
        assert len(again.coordinator.registry.groups["simple"].offsets) == 30
        assert world.committed(again) == 7

    on_loop(scenario)


def test_only_the_last_value_of_a_key_is_loaded() -> None:
    """The log is long, the state is not."""

    async def scenario() -> None:
        world = World()
        for offset in range(20):
            world.commit(offset)
        again = world.new_shard()
        await again.load()
        assert world.committed(again) == 19

    on_loop(scenario)


def test_sessions_end_by_the_timer_of_the_shard() -> None:
    """One timer, for the earliest deadline of all its groups."""
    world = World()
    world.join()
    world.sync(MEMBER, 1)
    world.partition.commit()
    world.advance(5_000)
    assert world.heartbeat(MEMBER, 1).answer.error_code == ErrorCode.NONE
    world.advance(5_000)
    assert world.heartbeat(MEMBER, 1).answer.error_code == ErrorCode.NONE
    world.advance(9_999)
    world.advance(1)
    world.partition.commit()
    assert world.heartbeat(MEMBER, 1).answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
