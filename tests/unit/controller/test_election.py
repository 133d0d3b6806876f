"""Who leads: by tables of states before and after."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.controller.election import (
    How,
    LogReach,
    Rules,
    elect_unclean,
    found_cause,
    lose,
    may_recover,
    prefer,
    recover,
    settle,
)
from ottla.metadata.image import NO_LEADER, PartitionImage

TWO = Rules(min_isr=2)
ONE = Rules(min_isr=1)
RECKLESS = Rules(min_isr=2, unclean=True)


def partition(leader, isr, *, epoch=5, replicas=(1, 2, 3), born=1, **rest):
    return PartitionImage(leader, epoch, replicas, isr, 7, leader_broker_epoch=born, **rest)


def alive(*brokers):
    """Brokers that live, all in their first registration."""
    return dict.fromkeys(brokers, 1)


def test_nothing_changes_where_all_live():
    """Deciding twice decides nothing new."""
    assert settle(partition(1, (1, 2, 3)), alive(1, 2, 3), TWO, cause="") is None
    died = settle(partition(1, (1, 2, 3)), alive(2, 3), TWO, cause="").after
    assert settle(died, alive(2, 3), TWO, cause="") is None


@pytest.mark.parametrize(
    ("live", "leader", "epoch", "isr", "elr", "how"),
    [
        # A follower dies: the term goes on.
        ((1, 2), 1, 5, (1, 2), (), None),
        # The leader dies: first live replica of the assignment that is in the ISR (P22).
        ((2, 3), 2, 6, (2, 3), (), How.IN_SYNC),
        # Below min ISR, who leaves stays eligible (KIP-966).
        ((3,), 3, 6, (3,), (1, 2), How.IN_SYNC),
        ((1,), 1, 5, (1,), (2, 3), None),
        # Nobody: the partition is offline, and nobody is forgotten.
        ((), NO_LEADER, 6, (), (1, 2, 3), How.NO_LEADER),
    ],
)
def test_the_dead_leave_and_the_first_live_replica_in_the_isr_leads(
    live, leader, epoch, isr, elr, how
):
    """RF 3, min ISR 2, all in sync, 1 leads."""
    change = settle(partition(1, (1, 2, 3)), alive(*live), TWO, cause="death")
    after = change.after
    assert (after.leader, after.leader_epoch, after.isr, after.elr) == (leader, epoch, isr, elr)
    assert change.how is how
    assert after.version == 7


def test_the_order_is_that_of_the_assignment_not_of_the_isr():
    """The preferred replica is tried first."""
    before = partition(1, (1, 2, 3), replicas=(1, 3, 2))
    assert settle(before, alive(2, 3), TWO, cause="").after.leader == 3


def test_an_eligible_replica_leads_where_none_is_in_sync():
    """S17: 1 went to the ELR before 2 lost power; it has all that is committed."""
    before = partition(NO_LEADER, (), born=0, elr=(1, 2))
    change = settle(before, {1: 4, 3: 1}, TWO, cause="1 is back")
    assert change.how is How.ELIGIBLE
    assert change.setting == "min.insync.replicas"
    assert change.after == partition(1, (1,), epoch=6, born=4, elr=(2,))


def test_with_enough_in_sync_nobody_else_is_eligible():
    """The next commit may be without them."""
    before = partition(NO_LEADER, (), born=0, elr=(1, 2))
    assert settle(before, alive(1), ONE, cause="").after.elr == ()


def test_min_isr_never_asks_for_more_replicas_than_there_are():
    """RF 1 with min ISR 2: the leader alone is enough."""
    before = partition(NO_LEADER, (), replicas=(1,), born=0, elr=(1,))
    assert settle(before, alive(1), TWO, cause="").after.isr == (1,)
    assert settle(before, alive(1), TWO, cause="").after.elr == ()


def test_a_leader_that_restarted_begins_a_new_term():
    """Two lives of a broker never write in one term: followers may have what it lost (S2)."""
    before = partition(1, (1, 2, 3))
    after = settle(before, {1: 2, 2: 1, 3: 1}, TWO, cause="bounce").after
    assert (after.leader, after.leader_epoch, after.leader_broker_epoch) == (1, 6, 2)
    assert after.isr == (1, 2, 3)


def test_an_unclean_stop_ends_membership_in_isr_and_elr():
    """R-6: the last replica standing lost its tail; the one in the ELR has what was committed."""
    before = partition(NO_LEADER, (), born=0, elr=(1, 2))
    waiting = lose(before, [2], {2: 2}, TWO, cause="2 lost power")
    assert waiting.after.leader == NO_LEADER
    assert (waiting.after.elr, waiting.after.last_known_elr) == ((1,), (2,))
    back = settle(waiting.after, {1: 2, 2: 2}, TWO, cause="1 is back").after
    assert (back.leader, back.isr, back.elr) == (1, (1,), ())


def test_a_follower_that_stopped_uncleanly_leaves_and_the_leader_stays():
    """It comes back into the ISR by fetching, not by having been there."""
    change = lose(partition(1, (1, 2, 3)), [3], {1: 1, 2: 1, 3: 2}, TWO, cause="")
    assert change.how is None
    assert (change.after.leader, change.after.leader_epoch, change.after.isr) == (1, 5, (1, 2))
    assert change.after.last_known_elr == (3,)


def test_a_leader_that_stopped_uncleanly_is_replaced():
    """Even though it lives again."""
    after = lose(partition(1, (1, 2, 3)), [1], {1: 2, 2: 1, 3: 1}, TWO, cause="").after
    assert (after.leader, after.leader_epoch, after.isr) == (2, 6, (2, 3))


def test_the_only_one_that_can_know_leads_again_after_an_unclean_stop():
    """RF 1 and a power cut: what is left is all there is, and it is told."""
    before = partition(1, (1,), replicas=(1,))
    change = lose(before, [1], {1: 2}, TWO, cause="")
    assert change.how is How.LAST_KNOWN
    assert (change.after.leader, change.after.leader_epoch, change.after.isr) == (1, 6, (1,))


def test_after_power_loss_of_all_the_furthest_of_the_last_known_leads():
    """S17's end: each is waited for, then the highest (epoch, end) is elected."""
    state = partition(NO_LEADER, (), born=0, elr=(1, 2))
    state = lose(state, [2], {2: 2}, TWO, cause="").after
    assert not may_recover(state, {2: 2})
    state = lose(state, [1], {1: 2, 2: 2}, TWO, cause="").after
    assert (state.leader, state.last_known_elr) == (NO_LEADER, (2, 1))
    live = {1: 2, 2: 2, 3: 2}
    assert may_recover(state, live)
    assert recover(state, {1: LogReach(4, 90, 0)}, live, cause="") is None
    reaches = {1: LogReach(4, 90, 0), 2: LogReach(5, 70, 3)}
    change = recover(state, reaches, live, cause="")
    assert (change.after.leader, change.after.isr, change.how) == (2, (2,), How.LAST_KNOWN)
    assert change.evidence == "the furthest of 2: epoch 5, 3 to 70, 1: epoch 4, 0 to 90"


def test_a_log_that_ends_below_anothers_start_is_not_the_furthest():
    """Only committed records are deleted: who never had them lacks them, whatever its epoch."""
    state = partition(NO_LEADER, (), born=0, last_known_elr=(1, 2))
    live = {1: 2, 2: 2}
    began_anew = LogReach(-1, 17, 17)
    change = recover(state, {1: LogReach(9, 16, 0), 2: began_anew}, live, cause="")
    assert change.after.leader == 2
    change = recover(state, {1: LogReach(7, 19, 17), 2: began_anew}, live, cause="")
    assert change.after.leader == 1


def test_without_leave_nobody_outside_isr_and_elr_leads():
    """unclean.leader.election.enable=false: offline, not lossy (P22)."""
    before = partition(1, (1,), elr=(2,))
    change = settle(before, alive(3), TWO, cause="")
    assert (change.after.leader, change.how) == (NO_LEADER, How.NO_LEADER)
    assert change.setting == "unclean.leader.election.enable"


def test_with_leave_a_survivor_leads_and_is_alone_in_sync():
    """P22: the ISR is itself, and the loss is told."""
    change = settle(partition(1, (1,), elr=(2,)), alive(3), RECKLESS, cause="")
    assert change.how is How.UNCLEAN
    assert (change.after.leader, change.after.isr, change.after.elr) == (3, (3,), ())
    assert change.setting == "unclean.leader.election.enable"


def test_an_unclean_leader_is_rather_one_that_was_eligible_last():
    """It has lost the least; whoever is still being added has the least."""
    before = partition(NO_LEADER, (), born=0, last_known_elr=(2, 3))
    assert settle(before, alive(1, 3), RECKLESS, cause="").after.leader == 3
    moving = partition(
        NO_LEADER, (), born=0, replicas=(3, 1, 2), adding=(3,), last_known_elr=(9, 8)
    )
    assert settle(moving, alive(2, 3), RECKLESS, cause="").after.leader == 2


def test_the_preferred_leader_leads_only_from_within_the_isr():
    """S19: alive is not enough."""
    live = alive(1, 2, 3)
    change = prefer(partition(2, (2, 1)), live, cause="asked")
    assert (change.after.leader, change.after.leader_epoch, change.after.isr) == (1, 6, (2, 1))
    for before, where, code in (
        (partition(1, (1, 2)), live, ErrorCode.ELECTION_NOT_NEEDED),
        (partition(2, (2, 3)), live, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (partition(2, (2, 1)), alive(2, 3), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ):
        with pytest.raises(OttlaError) as raised:
            prefer(before, where, cause="asked")
        assert raised.value.code is code


def test_an_unclean_election_by_command_needs_a_dead_leader_and_a_live_replica():
    """KIP-460: it is never the easy way out."""
    with pytest.raises(OttlaError) as raised:
        elect_unclean(partition(1, (1,)), alive(1, 2), TWO, cause="")
    assert raised.value.code is ErrorCode.ELECTION_NOT_NEEDED
    offline = partition(NO_LEADER, (), born=0, elr=(1, 2))
    with pytest.raises(OttlaError) as raised:
        elect_unclean(offline, {}, TWO, cause="")
    assert raised.value.code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elect_unclean(offline, alive(3), TWO, cause="").how is How.UNCLEAN
    # Asked for or not: who is eligible comes first, and nothing is lost.
    assert elect_unclean(offline, alive(2, 3), TWO, cause="").how is How.ELIGIBLE


def test_a_new_controller_says_who_died_and_not_only_that_it_took_office():
    """It saw no broker die: it finds who is missing, who restarted, or that all is as it was."""
    state = partition(3, (3, 1, 2))
    found = "when broker 1, the controller, read the cluster's state"
    assert found_cause(state, alive(1, 2), 1) == f"broker 3 died: not registered {found}"
    assert found_cause(state, alive(1), 1) == f"brokers 3, 2 died: not registered {found}"
    again = {**alive(1, 2), 3: 2}
    assert found_cause(state, again, 1) == f"broker 3 restarted: registered anew {found}"
    assert found_cause(state, alive(1, 2, 3), 1) == "broker 1 became the controller"
    nobody = partition(NO_LEADER, (3,))
    assert found_cause(nobody, alive(1, 3), 1) == "broker 1 became the controller"
