"""Reassignment, controlled shutdown, rebalance and deletion: where each step leads."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.controller.deletion import plan_deletion
from ottla.controller.election import (
    How,
    Rules,
    imbalance,
    move_away,
    still_led,
    to_return,
    without,
)
from ottla.controller.reassignment import begin, cancel, complete
from ottla.metadata.image import NO_LEADER, PartitionImage, TopicImage

TWO = Rules(min_isr=2)
LIVE = dict.fromkeys((1, 2, 3, 4, 5), 1)


def partition(leader, replicas, isr, **rest):
    return PartitionImage(leader, 5, replicas, isr, 7, leader_broker_epoch=1, **rest)


def test_a_move_goes_through_adding_and_ends_with_the_new_replicas_in_sync():
    """KIP-455, step by step: 1,2,3 to 3,4,5."""
    begun = begin(partition(1, (1, 2, 3), (1, 2, 3)), [3, 4, 5], LIVE, TWO).after
    assert (begun.replicas, begun.adding, begun.removing) == ((3, 4, 5, 1, 2), (4, 5), (1, 2))
    assert (begun.leader, begun.leader_epoch, begun.isr) == (1, 6, (1, 2, 3))
    assert complete(begun, LIVE, TWO) is None
    caught_up = partition(1, (3, 4, 5, 1, 2), (1, 2, 3, 4, 5), adding=(4, 5), removing=(1, 2))
    change = complete(caught_up, LIVE, TWO)
    ended = change.after
    assert (ended.replicas, ended.adding, ended.removing) == ((3, 4, 5), (), ())
    assert (ended.leader, ended.leader_epoch, ended.isr) == (3, 6, (3, 4, 5))
    assert change.how is How.REASSIGNMENT


def test_a_new_order_is_a_move_that_is_over_at_once():
    """Nobody is waited for; the leader stays until a preferred election."""
    after = begin(partition(1, (1, 2, 3), (1, 2, 3)), [2, 1, 3], LIVE, TWO).after
    assert (after.replicas, after.leader, after.is_moving) == ((2, 1, 3), 1, False)


def test_fewer_replicas_are_over_at_once():
    """All that remain are in sync already; it is one new term, not two."""
    after = begin(partition(1, (1, 2, 3), (1, 2, 3)), [2, 3], LIVE, TWO).after
    assert (after.replicas, after.leader, after.isr) == ((2, 3), 2, (2, 3))
    assert (after.leader_epoch, after.is_moving) == (6, False)


def test_a_move_is_turned_to_another_goal():
    """From where it began: 4 was being added and is not wanted any more."""
    moving = partition(1, (4, 2, 3, 1), (1, 2, 3, 4), adding=(4,), removing=(1,))
    after = begin(moving, [5, 2, 3], LIVE, TWO).after
    assert (after.replicas, after.adding, after.removing) == ((5, 2, 3, 1), (5,), (1,))
    assert after.isr == (1, 2, 3)


def test_a_cancelled_move_is_as_if_it_had_not_begun():
    """Also where a new replica leads by then."""
    moving = partition(4, (4, 2, 3, 1), (1, 2, 4), adding=(4,), removing=(1,))
    after = cancel(moving, LIVE, TWO).after
    assert (after.replicas, after.isr, after.leader) == ((2, 3, 1), (1, 2), 2)
    assert not after.is_moving
    with pytest.raises(OttlaError) as raised:
        cancel(after, LIVE, TWO)
    assert raised.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_is_not_cancelled_where_only_new_replicas_are_in_sync():
    """That would lose what they have."""
    moving = partition(4, (4, 1), (4,), adding=(4,), removing=(1,))
    with pytest.raises(OttlaError) as raised:
        cancel(moving, LIVE, TWO)
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("wanted", [[], [1, 1], [-1, 2], [1, 9]])
def test_what_is_no_list_of_replicas_is_refused(wanted):
    """Empty, twice, negative, unknown."""
    with pytest.raises(OttlaError) as raised:
        begin(partition(1, (1, 2), (1, 2)), wanted, LIVE, TWO)
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_replication_factor_changes_only_where_that_is_meant():
    """KIP-860."""
    with pytest.raises(OttlaError) as raised:
        begin(partition(1, (1, 2), (1, 2)), [1, 2, 3], LIVE, TWO, may_change_factor=False)
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_stopping_broker_leaves_the_isr_and_hands_over_within_it():
    """Nothing is lost: the next leader is in sync."""
    live = without(LIVE, [1])
    change = move_away(partition(1, (1, 2, 3), (1, 2, 3)), 1, live, TWO, cause="")
    assert (change.after.leader, change.after.isr, change.how) == (2, (2, 3), How.SHUTDOWN)
    follower = move_away(partition(2, (1, 2, 3), (1, 2, 3)), 1, live, TWO, cause="")
    assert (follower.after.leader, follower.after.leader_epoch, follower.how) == (2, 5, None)
    assert follower.after.isr == (2, 3)


def test_a_stopping_broker_that_is_alone_in_sync_leads_on():
    """It is told which; a topic without other replicas is not waited for."""
    alone = partition(1, (1, 2, 3), (1,), elr=(2,))
    assert move_away(alone, 1, without(LIVE, [1]), TWO, cause="") is None
    assert still_led(alone, 1)
    assert not still_led(partition(1, (1,), (1,)), 1)


def test_leadership_returns_where_too_much_of_it_is_away():
    """10 %: of ten partitions one may be led by another, not two (P26)."""
    at_home = {TopicPartition("t", i): partition(1, (1, 2), (1, 2)) for i in range(9)}
    away = {TopicPartition("t", 9): partition(2, (1, 2), (2, 1))}
    assert to_return(at_home | away, LIVE, 10) == []
    assert imbalance((at_home | away).values()) == {1: 0.1}
    away[TopicPartition("t", 8)] = partition(2, (1, 2), (2, 1))
    names = [TopicPartition("t", 9), TopicPartition("t", 8)]
    assert sorted(to_return(at_home | away, LIVE, 10)) == sorted(names)


def test_leadership_does_not_return_to_who_cannot_lead():
    """Dead, out of sync, or about to move (S19)."""
    for away, live in (
        (partition(2, (1, 2), (2, 1)), {2: 1}),
        (partition(2, (1, 2), (2,)), LIVE),
        (partition(2, (1, 2), (2, 1), adding=(1,)), LIVE),
    ):
        assert to_return({TopicPartition("t", 0): away}, live, 10) == []


def test_a_deletion_asks_the_living_and_waits_for_the_dead():
    """It is over when every replica has said so, and not before."""
    topic = TopicImage("t", "id", (partition(1, (1, 2), (1,)), partition(2, (2, 3), (2,))))
    plan = plan_deletion(topic, {1, 2}, set())
    assert dict(plan.asked) == {1: (0,), 2: (0, 1)}
    assert plan.awaited == (3,)
    plan = plan_deletion(topic, {1, 2}, {(0, 1), (0, 2), (1, 2)})
    assert (dict(plan.asked), plan.awaited, plan.is_done) == ({}, (3,), False)
    assert plan_deletion(topic, {1, 2}, {(0, 1), (0, 2), (1, 2), (1, 3)}).is_done


def test_a_move_is_not_turned_round_where_too_few_copies_would_stay():
    """4 and 1 hold all records; without 1 a single power cut could lose them."""
    moving = partition(4, (1, 5, 2, 3, 4), (4, 1), adding=(1, 5), removing=(3, 4))
    with pytest.raises(OttlaError, match=r"\[1\] would go and only 1 stay, of 2 needed") as told:
        begin(moving, [3, 2, 4], LIVE, TWO)
    assert told.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    with pytest.raises(OttlaError, match=r"\[1\] would go and only 1 stay, of 2 needed"):
        cancel(moving, LIVE, TWO)
    assert begin(moving, [3, 1, 4], LIVE, TWO).after.isr == (4, 1)
    assert cancel(moving, LIVE, Rules(min_isr=1)).after.isr == (4,)


def test_eligible_replicas_count_as_copies_when_a_move_is_cancelled():
    """With too few in sync nothing is committed, so that the eligible hold all that is."""
    moving = partition(4, (1, 2, 4, 3), (4,), elr=(1, 2), adding=(1,), removing=(3,))
    after = cancel(moving, LIVE, TWO).after
    assert (after.isr, after.elr) == ((4,), (2,))


def test_who_may_hold_the_last_records_is_not_dropped_by_a_move():
    """Nobody is in sync or eligible: whichever was so last may be the furthest."""
    moving = partition(
        NO_LEADER, (1, 2, 3, 4), (), last_known_elr=(4, 1), adding=(1,), removing=(4,)
    )
    with pytest.raises(OttlaError, match=r"\[1\] would go and only 1 stay, of 2 needed"):
        cancel(moving, LIVE, TWO)


def test_no_move_brings_two_replicas_onto_one_machine_of_cores():
    """New replicas only: what shares a machine already may be reordered, and go."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: None}
    held = partition(1, (1, 3), (1, 3))
    with pytest.raises(OttlaError) as raised:
        begin(held, [1, 2], LIVE, TWO, registered=racks, apart=True)
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "brokers 1 and 2 are both on a" in raised.value.message
    assert begin(held, [1, 2], LIVE, TWO, registered=racks).after.adding == (2,)
    assert begin(held, [2, 4], LIVE, TWO, registered=racks, apart=True).after.adding == (2, 4)
    assert begin(held, [1, 5], LIVE, TWO, registered=racks, apart=True).after.adding == (5,)
    older = partition(1, (1, 2, 3), (1, 2, 3))
    reordered = begin(older, [2, 1, 3], LIVE, TWO, registered=racks, apart=True).after
    assert reordered.replicas == (2, 1, 3)
