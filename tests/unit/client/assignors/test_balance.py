"""What holds of every sticky assignment, whoever had what before."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.base.ids import TopicPartition
from ottla.client.assignors import assignor_named
from ottla.client.assignors.subscriptions import Subscription

TOPICS = ("t0", "t1", "t2")


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, int], dict[str, Subscription]]:
    """Topics with their partitions, and members with arbitrary claims."""
    counts = {topic: draw(st.integers(1, 6)) for topic in TOPICS}
    everything = [TopicPartition(topic, n) for topic in TOPICS for n in range(counts[topic])]
    assignor = assignor_named("sticky")
    members: dict[str, Subscription] = {}
    for number in range(draw(st.integers(1, 5))):
        topics = tuple(sorted(draw(st.sets(st.sampled_from(TOPICS), min_size=1))))
        claimed = draw(st.lists(st.sampled_from(everything), unique=True, max_size=8))
        user_data = assignor.user_data(claimed, draw(st.integers(1, 3)))
        members[f"m{number}"] = Subscription(topics, user_data=user_data)
    return counts, members


@given(groups())
def test_every_partition_that_is_read_has_exactly_one_member_that_reads_it(group) -> None:
    """P11: none is left out, none is read twice, none goes to one who did not ask."""
    counts, members = group
    assignment = assignor_named("sticky").assign(counts, members)
    given_out = [partition for share in assignment.values() for partition in share]
    wanted = {topic for member in members.values() for topic in member.topics}
    assert sorted(given_out) == sorted(
        TopicPartition(topic, number) for topic in wanted for number in range(counts[topic])
    )
    assert all(
        partition.topic in members[member_id].topics
        for member_id, share in assignment.items()
        for partition in share
    )


@given(groups())
def test_no_move_would_make_it_more_even(group) -> None:
    """Nobody has two more than one who could take a partition over."""
    counts, members = group
    assignment = assignor_named("sticky").assign(counts, members)
    for rich, share in assignment.items():
        for partition in share:
            for poor, member in members.items():
                if partition.topic in member.topics:
                    assert len(assignment[rich]) - len(assignment[poor]) < 2


@given(groups())
def test_assigning_again_moves_nothing(group) -> None:
    """What is settled stays settled."""
    counts, members = group
    assignor = assignor_named("sticky")
    settled = assignor.assign(counts, members)
    again = {
        member_id: Subscription(member.topics, user_data=assignor.user_data(settled[member_id], 4))
        for member_id, member in members.items()
    }
    assert {k: set(v) for k, v in assignor.assign(counts, again).items()} == {
        k: set(v) for k, v in settled.items()
    }
