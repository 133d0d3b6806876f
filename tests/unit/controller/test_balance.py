"""Plans of where replicas are to lie."""

import random
from collections import Counter

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.controller.balance import balanced, follow_only, off, onto

NO_RACKS = {1: None, 2: None, 3: None}


def lists(*replicas: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", index): entry for index, entry in enumerate(replicas)}


def test_what_is_even_is_left_alone() -> None:
    """No plan for a cluster whose numbers differ by one at most."""
    assert balanced(lists((1, 2), (2, 3), (3, 1)), NO_RACKS) == {}
    assert balanced(lists((1,)), NO_RACKS) == {}


def test_a_new_broker_gets_its_share_with_few_moves() -> None:
    """Two of the six replicas go to the new one; no partition moves whole."""
    before = lists((1, 2), (2, 1), (1, 2))
    plan = balanced(before, NO_RACKS)
    after = {**before, **plan}
    assert Counter(b for replicas in after.values() for b in replicas) == {1: 2, 2: 2, 3: 2}
    assert Counter(replicas[0] for replicas in after.values()) == {1: 1, 2: 1, 3: 1}
    assert sum(len(set(after[name]) - set(before[name])) for name in before) == 2


def test_leads_are_handed_down_in_a_chain() -> None:
    """1 leads too much, and shares nothing with 3: 2 takes from 1 and gives to 3."""
    plan = balanced(lists((1, 2), (1, 2), (2, 3), (9, 3)), NO_RACKS)
    assert plan == {
        TopicPartition("t", 0): (2, 1),
        TopicPartition("t", 2): (3, 2),
    }


def test_a_balanced_cluster_is_even_whatever_it_was() -> None:
    """Replicas and leads differ by one at most; nobody has a partition twice; same plan again."""
    chance = random.Random(5)
    for _ in range(60):
        brokers = dict.fromkeys(range(1, chance.randint(2, 7)), None)
        factor = chance.randint(1, len(brokers))
        before = lists(
            *(tuple(chance.sample(sorted(brokers), factor)) for _ in range(chance.randint(1, 30)))
        )
        plan = balanced(before, brokers)
        after = {**before, **plan}
        for replicas in after.values():
            assert len(set(replicas)) == factor
        for counted in (
            Counter(b for replicas in after.values() for b in replicas),
            Counter(replicas[0] for replicas in after.values()),
        ):
            numbers = [counted[broker] for broker in brokers]
            assert max(numbers) - min(numbers) <= 1, (before, after)
        assert balanced(after, brokers) == {}
        assert balanced(before, brokers) == plan


def test_balancing_never_puts_replicas_into_fewer_racks() -> None:
    """The replicas of 1 may go to 2 only: 3 has the rack of the other replica."""
    racks = {1: "a", 2: "a", 3: "b"}
    plan = balanced(lists((1, 3), (3, 1), (1, 3), (3, 1)), racks)
    after = {**lists((1, 3), (3, 1), (1, 3), (3, 1)), **plan}
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in after.values())
    assert Counter(b for replicas in after.values() for b in replicas) == {1: 2, 2: 2, 3: 4}


def test_what_moves_already_only_counts() -> None:
    """Both partitions lie on 1 and 2; only the one at rest may give to 3."""
    plan = balanced(lists((1, 2), (1, 2)), NO_RACKS, {TopicPartition("t", 0)})
    assert list(plan) == [TopicPartition("t", 1)]


def test_racks_do_not_count_where_a_broker_has_none() -> None:
    """Else 3 would get nothing: to whom it belongs is not known."""
    plan = balanced(lists((1, 2), (1, 2), (1, 2)), {1: "a", 2: "b", 3: None})
    assert sum(3 in replicas for replicas in plan.values()) == 2


def test_replicas_of_dead_brokers_stay_theirs() -> None:
    """9 is not alive: its share is not handed out, for it may be back in a minute."""
    assert balanced(lists((9, 1), (2, 9)), {1: None, 2: None}) == {}


def test_a_broker_is_left_by_all_its_replicas() -> None:
    """The newcomer is the one with the least, and leads what would make another lead twice."""
    plan = off(lists((3, 1), (1, 2), (2, 3)), 3, {**NO_RACKS, 4: None})
    assert plan == {TopicPartition("t", 0): (4, 1), TopicPartition("t", 2): (2, 4)}


def test_a_replica_goes_to_a_rack_that_has_none() -> None:
    """2 has less, 4 has the right rack."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert off(lists((1, 3), (4,)), 3, racks) == {TopicPartition("t", 0): (1, 4)}


def test_a_broker_that_is_needed_cannot_be_left() -> None:
    """Three replicas need three brokers; the message says what to do."""
    with pytest.raises(OttlaError, match=r"t-0 is to have 3 replicas.* only 2 brokers") as caught:
        off(lists((1, 2, 3)), 3, NO_RACKS)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_can_follow_only() -> None:
    """It keeps its replicas and stands last; what nobody else has it keeps leading."""
    plan = follow_only(lists((3, 1, 2), (1, 3), (3,), (3, 9), (3, 2, 1)), 3, NO_RACKS)
    assert plan == {
        TopicPartition("t", 0): (1, 2, 3),
        TopicPartition("t", 4): (2, 1, 3),
    }


def test_partitions_are_put_onto_chosen_brokers() -> None:
    """With as many replicas, or more, or fewer; what lies there already stays."""
    assert onto(lists((1, 2), (2, 1)), {2: None, 3: None}) == {
        TopicPartition("t", 0): (3, 2),
        TopicPartition("t", 1): (2, 3),
    }
    assert onto(lists((1,)), NO_RACKS, 3) == {TopicPartition("t", 0): (1, 2, 3)}
    assert onto(lists((1, 2, 3)), NO_RACKS, 1) == {TopicPartition("t", 0): (1,)}
    with pytest.raises(OttlaError, match="only 1 brokers"):
        onto(lists((1,)), {1: None}, 2)
