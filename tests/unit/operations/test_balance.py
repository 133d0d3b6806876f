"""Which partitions a balance gives back to their first replica, and what a drain cannot move."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.partitions import PartitionStatus
from ottla.operations.moves import MovePlan
from ottla.operations.placement import BalancePlan, led_by_others


def standing(
    index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionStatus:
    return PartitionStatus(TopicPartition("t", index), leader, 0, replicas, isr, 1)


STANDINGS = [
    standing(0, 1, (1, 2), (1, 2)),
    standing(1, 2, (1, 2), (1, 2)),
    standing(2, 2, (1, 2), (2,)),
    standing(3, 2, (1, 2), (1, 2)),
]


def test_a_partition_is_given_back_to_a_first_replica_that_is_in_sync() -> None:
    """Those that move are led by their first replica at the end of the move anyway."""
    assert led_by_others(STANDINGS, {TopicPartition("t", 3)}) == (TopicPartition("t", 1),)


def test_a_balance_without_moves_may_still_have_something_to_do() -> None:
    """Giving leadership back copies nothing."""
    nothing = MovePlan({}, ())
    assert not BalancePlan(nothing, ())
    assert BalancePlan(nothing, (TopicPartition("t", 1),))
    assert BalancePlan(MovePlan({TopicPartition("t", 0): (2, 1)}, ()), ())
