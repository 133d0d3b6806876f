"""Plans to spread replicas and leaders evenly over the brokers."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.controller.balance import balanced
from ottla.operations.moves import OnDone, carry_out, lead_first, sizes
from ottla.operations.plans import MovePlan, move_plan


@dataclass(frozen=True, slots=True)
class BalancePlan:
    """The moves, and the partitions whose leadership returns to their first replica."""

    moves: MovePlan
    given_back: tuple[TopicPartition, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.moves.plan or self.given_back)


async def plan_balance(admin: Admin) -> BalancePlan:
    """Plan to give each broker as many replicas and leaders as any other.

    Partitions that are being moved count with the replicas they will have, and stay as they are.
    """
    found = await admin.cluster.describe()
    standings = await admin.partitions.standings()
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    under_way = await admin.partitions.reassignments()
    ends = {name: move.target for name, move in under_way.items()}
    lists = {one.name: ends.get(one.name, one.replicas) for one in standings}
    plan = balanced(lists, racks, ends)
    moves = move_plan(plan, standings, await sizes(admin))
    return BalancePlan(moves, led_by_others(standings, {*plan, *ends}))


async def balance(admin: Admin, plan: BalancePlan, at_once: int, on_done: OnDone) -> None:
    """Carry out the plan, `at_once` partitions at a time."""
    await carry_out(admin, plan.moves.plan, at_once, on_done)
    if plan.given_back:
        await lead_first(admin, plan.given_back)


def led_by_others(
    standings: Iterable[PartitionStanding], besides: Collection[TopicPartition]
) -> tuple[TopicPartition, ...]:
    """Partitions whose first replica is in sync and not the leader, without those `besides`."""
    return tuple(
        one.name
        for one in standings
        if one.name not in besides and one.leader != one.replicas[0] and one.replicas[0] in one.isr
    )
