"""Assignments equal to those of Java's consumer (clients 4.3.1), case by case.

The expected lines were printed by Java's assignors for the same members.
"""

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.assignors import assignor_named
from ottla.client.assignors.subscriptions import Subscription
from ottla.client.common.errors import ClientError

# (topics, what it had, in which generation, instance id)
Member = tuple[str, str, int, str | None]


def partitions(text: str) -> tuple[TopicPartition, ...]:
    """`"t-0 u-3"` as partitions."""
    pairs = (name.rsplit("-", 1) for name in text.split())
    return tuple(TopicPartition(topic, int(number)) for topic, number in pairs)


def assign(name: str, counts: dict[str, int], members: dict[str, Member]) -> dict[str, str]:
    """Partitions by member, sorted, as text."""
    assignor = assignor_named(name)
    told: dict[str, Subscription] = {}
    for member_id, (topics, had, generation, instance_id) in members.items():
        owned = partitions(had)
        # Only cooperative members still have partitions while they join.
        keeps = assignor.is_cooperative
        told[member_id] = Subscription(
            tuple(topics.split()),
            owned if keeps else (),
            generation if keeps else -1,
            assignor.user_data(owned, generation),
            instance_id,
        )
    found = assignor.assign(counts, told)
    return {member_id: " ".join(map(str, sorted(found[member_id]))) for member_id in sorted(found)}


def test_range_cuts_each_topic_into_runs() -> None:
    """The first members get one more; members that do not read a topic get none of it."""
    members: dict[str, Member] = {
        "a": ("t0 t1", "", -1, None),
        "b": ("t0 t1", "", -1, None),
        "c": ("t0", "", -1, None),
    }
    assert assign("range", {"t0": 7, "t1": 2}, members) == {
        "a": "t0-0 t0-1 t0-2 t1-0",
        "b": "t0-3 t0-4 t1-1",
        "c": "t0-5 t0-6",
    }


def test_range_orders_static_members_by_instance_id_before_the_others() -> None:
    """KIP-345: so that a restart under a new member id changes nothing."""
    members: dict[str, Member] = {
        "a": ("t0", "", -1, None),
        "b": ("t0", "", -1, "z"),
        "c": ("t0", "", -1, "y"),
    }
    assert assign("range", {"t0": 3}, members) == {"a": "t0-2", "b": "t0-1", "c": "t0-0"}


def test_round_robin_skips_members_that_do_not_read_the_topic() -> None:
    """All partitions in the order of topics, dealt out one by one."""
    members: dict[str, Member] = {
        "a": ("t0 t1", "", -1, None),
        "b": ("t1 t2", "", -1, None),
        "c": ("t0 t2", "", -1, None),
    }
    assert assign("roundrobin", {"t0": 3, "t1": 2, "t2": 1}, members) == {
        "a": "t0-0 t0-2 t1-1",
        "b": "t1-0 t2-0",
        "c": "t0-1",
    }


def test_sticky_moves_to_a_new_member_only_its_share() -> None:
    """KIP-54: the others keep what they had, as far as evenness allows."""
    members: dict[str, Member] = {
        "a": ("t0 t1", "t0-0 t0-1 t0-2 t0-3", 5, None),
        "b": ("t0 t1", "t1-0 t1-1 t1-2", 5, None),
        "c": ("t0 t1", "", -1, None),
    }
    assert assign("sticky", {"t0": 4, "t1": 3}, members) == {
        "a": "t0-0 t0-1 t0-2",
        "b": "t1-0 t1-1",
        "c": "t0-3 t1-2",
    }


def test_sticky_deals_out_what_a_member_left_behind() -> None:
    """The partitions of one that is gone go to the rest, one each in turn."""
    members: dict[str, Member] = {
        "a": ("t0", "t0-0 t0-3 t0-6", 5, None),
        "b": ("t0", "t0-1 t0-4 t0-7", 5, None),
    }
    assert assign("sticky", {"t0": 8}, members) == {
        "a": "t0-0 t0-2 t0-3 t0-6",
        "b": "t0-1 t0-4 t0-5 t0-7",
    }


def test_cooperative_withholds_what_changes_hands_for_one_generation() -> None:
    """KIP-429: first it is revoked, and in the next generation given."""
    first: dict[str, Member] = {
        "a": ("t0 t1", "t0-0 t0-1 t0-2 t0-3", 5, None),
        "b": ("t0 t1", "t1-0 t1-1 t1-2", 5, None),
        "c": ("t0 t1", "", -1, None),
    }
    then: dict[str, Member] = {
        "a": ("t0 t1", "t0-0 t0-1 t0-2", 6, None),
        "b": ("t0 t1", "t1-0 t1-1", 6, None),
        "c": ("t0 t1", "", 6, None),
    }
    counts = {"t0": 4, "t1": 3}
    kept = {"a": "t0-0 t0-1 t0-2", "b": "t1-0 t1-1"}
    assert assign("cooperative-sticky", counts, first) == {**kept, "c": ""}
    assert assign("cooperative-sticky", counts, then) == {**kept, "c": "t0-3 t1-2"}


def test_cooperative_believes_the_later_generation() -> None:
    """A member that missed a rebalance may claim what is another's by now."""
    members: dict[str, Member] = {
        "a": ("t0", "t0-0 t0-1", 7, None),
        "b": ("t0", "t0-1 t0-2", 6, None),
    }
    assert assign("cooperative-sticky", {"t0": 4}, members) == {"a": "t0-0 t0-1", "b": "t0-2 t0-3"}


def test_cooperative_gives_nobody_what_two_claim_alike() -> None:
    """Both must let go of it before one gets it."""
    members: dict[str, Member] = {
        "a": ("t0", "t0-0 t0-1", 7, None),
        "b": ("t0", "t0-1 t0-2", 7, None),
    }
    assert assign("cooperative-sticky", {"t0": 4}, members) == {"a": "t0-0", "b": "t0-2 t0-3"}


def test_topics_that_do_not_exist_are_nobodys() -> None:
    """They are not counted until they are made."""
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        assert assign(name, {"t": 1}, {"a": ("t gone", "", -1, None)}) == {"a": "t-0"}


def test_an_unknown_assignor_is_refused_with_the_known_ones() -> None:
    """The error lists what may be given."""
    with pytest.raises(ClientError, match="range, roundrobin, sticky, cooperative-sticky"):
        assignor_named("fair")
