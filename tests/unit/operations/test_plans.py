"""What plans of moves change and cost, how far moves are, and Kafka's file of plans."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin.partitions import PartitionStatus, Reassignment
from ottla.operations.moves import Move, MoveProgress, from_json, move_plan, progress_of, to_json

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def standing(name: TopicPartition, *replicas: int) -> PartitionStatus:
    return PartitionStatus(name, replicas[0], 0, replicas, replicas, 1)


def test_a_plan_costs_the_replicas_that_brokers_do_not_have_yet() -> None:
    """Each is copied whole: as large as the largest there is. An order costs nothing."""
    plan = {FIRST: (3, 4), SECOND: (2, 1)}
    standings = [standing(FIRST, 1, 2), standing(SECOND, 1, 2), standing(TopicPartition("u", 0), 9)]
    found = move_plan(plan, standings, {FIRST: {1: 90, 2: 100}})
    assert found.moves == (Move(FIRST, (1, 2), (3, 4), 100), Move(SECOND, (1, 2), (2, 1), 0))
    assert [move.copied_to for move in found.moves] == [(3, 4), ()]
    assert [move.copied_bytes for move in found.moves] == [200, 0]
    assert (found.copies, found.copied_bytes) == (2, 200)


def test_a_move_is_as_far_as_the_new_replicas_are_large() -> None:
    """A replica that is larger than the leader's, as before compaction, counts as whole."""
    moves = {
        SECOND: Reassignment((1, 2, 3), adding=(3,), removing=(1,)),
        FIRST: Reassignment((1, 2, 3, 4), adding=(3, 4), removing=(1, 2)),
    }
    held = {FIRST: {1: 100, 3: 25}, SECOND: {1: 100, 2: 120, 3: 120}}
    first, second = progress_of(moves, held)
    assert first == MoveProgress(FIRST, (3, 4), (3, 4), (1, 2), copied_bytes=25, total_bytes=200)
    assert (first.copied_percent, first.left_bytes) == (12, 175)
    assert (second.name, second.copied_percent, second.left_bytes) == (SECOND, 100, 0)


def test_a_move_of_nothing_has_no_percentage() -> None:
    """An empty partition, or one of which no broker told the size, or a change of order."""
    (empty,) = progress_of({FIRST: Reassignment((1, 2), (2,), (1,))}, {})
    assert (empty.copied_percent, empty.left_bytes) == (None, 0)


def test_a_plan_is_written_and_read_in_the_form_of_kafka_reassign_partitions() -> None:
    """What else stands in such a file, as log_dirs, is passed over."""
    assert to_json({FIRST: (1, 2)}) == {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}],
    }
    text = """{"version": 1, "partitions": [
        {"topic": "t", "partition": 1, "replicas": [2, 3], "log_dirs": ["any", "any"]},
        {"topic": "t", "partition": 0, "replicas": [1, 2]}]}"""
    assert from_json(text, "plan.json") == {SECOND: (2, 3), FIRST: (1, 2)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "KeyError 'replicas'"),
        ('{"partitions": []}', "it names no partition"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
            ' {"topic": "t", "partition": 0, "replicas": [2]}]}',
            "it names a partition twice",
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(text: str, why: str) -> None:
    """The message names the file, and the command that writes a right one."""
    with pytest.raises(OttlaError) as refused:
        from_json(text, "plan.json")
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.message.startswith("plan.json is no plan (" + why)
    assert "`ottla partition plan … -o json`" in refused.value.message
