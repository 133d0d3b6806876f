"""Where a reset moves a group, and what takes it back."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.operations.group_offsets import OffsetMove, OffsetPlan, OffsetTarget, bounded, wished

FIRST, SECOND, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def move(name: TopicPartition, old: int | None, new: int | None, done: int = 0) -> OffsetMove:
    return OffsetMove(name, 0, 100, old, new, done=done)


@pytest.mark.parametrize(
    ("target", "old", "wish"),
    [
        (OffsetTarget(earliest=True), 50, (10, "")),
        (OffsetTarget(latest=True), None, (100, "")),
        (OffsetTarget(offset=7), 50, (7, "")),
        (OffsetTarget(by=-60), 50, (-10, "")),
        (OffsetTarget(by=5), None, (None, "nothing committed to start from")),
        (OffsetTarget(singles={FIRST: None}), 50, (None, "")),
        (OffsetTarget(singles={FIRST: 33}), 50, (33, "")),
    ],
)
def test_a_target_names_an_offset(
    target: OffsetTarget, old: int | None, wish: tuple[int | None, str]
) -> None:
    """Of a log with offsets 10 to 100."""
    assert wished(target, FIRST, 10, 100, old, -1) == wish


def test_a_time_after_the_last_record_is_the_end() -> None:
    """-1 is what brokers answer where no record is as late."""
    late = OffsetTarget(time_ms=5)
    assert wished(late, FIRST, 10, 100, 50, 70) == (70, "")
    assert wished(late, FIRST, 10, 100, 50, -1) == (100, "no record is as late: the end")


def test_a_move_stays_within_the_log() -> None:
    """And says what was wished for."""
    assert bounded(FIRST, 10, 100, 50, 3, "").note == "3 is before the first record"
    assert bounded(FIRST, 10, 100, 50, 3, "").new == 10
    assert bounded(FIRST, 10, 100, 50, 101, "").note == "101 is beyond the end"
    assert bounded(FIRST, 10, 100, 50, 101, "").new == 100
    assert bounded(FIRST, 10, 100, 50, 100, "") == OffsetMove(FIRST, 10, 100, 50, 100)
    assert bounded(FIRST, 10, 100, 50, None, "why").new is None


def test_a_change_is_another_offset_or_records_that_come_again() -> None:
    """No new offset with a note is none: it could not be found."""
    assert move(FIRST, 5, 6).is_change
    assert not move(FIRST, 5, 5).is_change
    assert move(FIRST, 5, 5, done=2).is_change
    assert move(FIRST, 5, None).is_change
    assert not OffsetMove(FIRST, 0, 100, None, None, "nothing committed to start from").is_change
    assert (move(FIRST, 5, 3).change, move(FIRST, None, 3).change) == (-2, None)


def test_undoing_puts_back_what_was_committed() -> None:
    """And deletes what was not; partitions that did not change are not mentioned."""
    plan = OffsetPlan(False, [move(FIRST, 5, 6), move(SECOND, 7, 7), move(OTHER, None, 3)])
    assert plan.undoing == [(FIRST, 5), (OTHER, None)]


def test_a_share_group_forgets_whole_topics_only() -> None:
    """In a topic that it had begun, a partition without start offset keeps its new one."""
    begun = [move(FIRST, 5, 6), move(SECOND, None, 6)]
    assert OffsetPlan(True, [*begun, move(OTHER, None, 3)]).undoing == [(FIRST, 5), (OTHER, None)]
    again = OffsetPlan(True, [move(FIRST, 5, 5, done=2)])
    assert again.undoing == []
