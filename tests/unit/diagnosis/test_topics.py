"""Which brokers with replicas of a topic are down; lag; offsets in use."""

from uuid import UUID

from ottla.client.connection.view import NO_LEADER, PartitionDescription, TopicDescription
from ottla.diagnosis.groups import total_lag
from ottla.diagnosis.partitions import PartitionOffsets, brokers_down, fewest_alive

VIEW = TopicDescription(
    "t",
    UUID(int=1),
    False,
    (
        PartitionDescription(0, 1, 0, (1, 2, 3), (1, 2)),
        PartitionDescription(1, NO_LEADER, 0, (3, 4, 2), ()),
    ),
)


def test_brokers_that_are_down_are_those_with_replicas_that_do_not_live() -> None:
    """Others that are down do not concern the topic."""
    assert brokers_down([VIEW], {1, 2, 5}) == (3, 4)
    assert brokers_down([VIEW], {1, 2, 3, 4}) == ()


def test_the_partition_with_the_fewest_live_replicas_counts() -> None:
    """It is the first that refuses acks=all."""
    assert fewest_alive(VIEW, {1, 2}) == 1
    assert fewest_alive(VIEW, {1, 2, 3}) == 2


def test_a_partition_without_a_leader_has_no_offsets_in_use() -> None:
    """They are not known, rather than 0; the sum over a topic leaves them out."""
    led, headless = VIEW.partitions
    assert PartitionOffsets(led, 40, 100).offset_count == 60
    assert PartitionOffsets(led, 40, 100).leader == 1
    assert PartitionOffsets(headless, None, None).offset_count == 0
    assert PartitionOffsets(headless, None, None).leader is None


def test_the_lag_of_a_group_is_the_sum_of_what_is_known() -> None:
    """A group that has committed nothing has no lag, which is not 0."""
    assert total_lag([3, None, 4]) == 7
    assert total_lag([0]) == 0
    assert total_lag([None]) is None
    assert total_lag([]) is None
