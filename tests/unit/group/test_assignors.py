"""Laws of the assignors that the coordinator offers."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.group.consumer.assignors import ASSIGNORS, Subscriber, by_range, uniform
from ottla.group.values.topics import AssignedSlot, Share

TOPICS = [UUID(int=number) for number in range(1, 5)]
A, B = TOPICS[:2]


def slots(topic: UUID, *partitions: int) -> Share:
    return frozenset(AssignedSlot(topic, partition) for partition in partitions)


def test_uniform_gives_every_member_the_same_number() -> None:
    """Seven partitions, three members: two have two, one has three."""
    members = {name: Subscriber(frozenset([A])) for name in "xyz"}
    assert sorted(len(share) for share in uniform(members, {A: 7}).values()) == [2, 2, 3]


def test_uniform_moves_only_what_a_new_member_needs() -> None:
    """A third member takes one partition from each of two that had three."""
    before = {
        "x": Subscriber(frozenset([A]), share=slots(A, 0, 1, 2)),
        "y": Subscriber(frozenset([A]), share=slots(A, 3, 4, 5)),
    }
    after = uniform({**before, "z": Subscriber(frozenset([A]))}, {A: 6})
    assert len(after["z"]) == 2
    assert after["x"] < before["x"].share
    assert after["y"] < before["y"].share


def test_range_gives_equal_numbers_of_two_topics_to_the_same_member() -> None:
    """Topics of one shape can be joined: who has partition 0 of one has it of the other."""
    members = {name: Subscriber(frozenset([A, B])) for name in "xyz"}
    assert by_range(members, {A: 4, B: 4}) == {
        "x": slots(A, 0, 1) | slots(B, 0, 1),
        "y": slots(A, 2) | slots(B, 2),
        "z": slots(A, 3) | slots(B, 3),
    }


def test_range_orders_static_members_by_their_instance_ids() -> None:
    """A static member that comes back under another member id gets the same run."""
    members = {
        "b": Subscriber(frozenset([A]), instance_id="first"),
        "a": Subscriber(frozenset([A]), instance_id="second"),
    }
    assert by_range(members, {A: 2}) == {"b": slots(A, 0), "a": slots(A, 1)}


def test_range_places_static_members_before_dynamic_ones() -> None:
    """As Kafka does: a dynamic member that joins or leaves moves no more runs than it must."""
    members = {
        "a": Subscriber(frozenset([A])),
        "m": Subscriber(frozenset([A]), instance_id="z"),
        "b": Subscriber(frozenset([A])),
    }
    assert by_range(members, {A: 3}) == {"m": slots(A, 0), "a": slots(A, 1), "b": slots(A, 2)}


@st.composite
def situations(draw: st.DrawFn) -> tuple[dict[str, Subscriber], dict[UUID, int]]:
    counts = {topic: draw(st.integers(1, 9)) for topic in TOPICS}
    members = {}
    for number in range(draw(st.integers(1, 6))):
        topics = draw(st.frozensets(st.sampled_from(TOPICS)))
        had = draw(
            st.frozensets(st.builds(AssignedSlot, st.sampled_from(TOPICS), st.integers(0, 11)))
        )
        members[f"m{number}"] = Subscriber(topics, share=had)
    return members, counts


@given(situations(), st.sampled_from(sorted(ASSIGNORS)))
def test_each_partition_that_is_read_goes_to_one_reader(
    situation: tuple[dict[str, Subscriber], dict[UUID, int]], name: str
) -> None:
    """Nothing is left out, nothing is shared twice, nobody gets what it does not read."""
    members, counts = situation
    shares = ASSIGNORS[name](members, counts)
    assert shares.keys() == members.keys()
    given_out = [slot for share in shares.values() for slot in share]
    read = {topic for member in members.values() for topic in member.topics}
    assert sorted(given_out) == sorted(
        AssignedSlot(topic, index) for topic in read for index in range(counts[topic])
    )
    for member_id, share in shares.items():
        assert {slot.topic_id for slot in share} <= members[member_id].topics


@given(situations())
def test_uniform_has_no_move_left_that_would_even_out(
    situation: tuple[dict[str, Subscriber], dict[UUID, int]],
) -> None:
    """No reader of a partition has two fewer than its owner; a second run changes nothing."""
    members, counts = situation
    shares = uniform(members, counts)
    for owner, share in shares.items():
        for slot in share:
            for other, member in members.items():
                if slot.topic_id in member.topics:
                    assert len(shares[owner]) <= len(shares[other]) + 1
    again = {
        member_id: Subscriber(member.topics, member.instance_id, shares[member_id])
        for member_id, member in members.items()
    }
    assert uniform(again, counts) == shares
