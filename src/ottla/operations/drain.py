"""Plans to move all replicas, or all leadership, off one broker."""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.controller.balance import Lists, Plan, Racks, follow_only, off
from ottla.operations.moves import sizes
from ottla.operations.plans import MovePlan, move_plan


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The moves off the broker; `stay` are partitions that no other broker could lead."""

    moves: MovePlan
    stay: tuple[TopicPartition, ...]


async def plan_drain(admin: Admin, broker_id: int, *, only_leaders: bool) -> DrainPlan:
    """Plan to move all replicas off the broker, or (`only_leaders`) all leadership.

    Raises BROKER_NOT_AVAILABLE where there is no such broker and it has no replicas, and
    INVALID_REPLICATION_FACTOR where the other brokers are too few to take its replicas.
    """
    found = await admin.cluster.describe()
    standings = await admin.partitions.standings()
    lists = {one.name: one.replicas for one in standings}
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    if broker_id not in racks and not any(broker_id in replicas for replicas in lists.values()):
        raise OttlaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"there is no broker {broker_id}, and none of its replicas; there are {sorted(racks)}",
        )
    if not only_leaders:
        plan = _off(lists, broker_id, racks)
        return DrainPlan(move_plan(plan, standings, await sizes(admin)), ())
    plan = follow_only(lists, broker_id, racks)
    moves = move_plan(plan, standings, await sizes(admin))
    return DrainPlan(moves, _led_on(standings, plan, broker_id))


def _led_on(
    standings: Iterable[PartitionStanding], plan: Plan, broker_id: int
) -> tuple[TopicPartition, ...]:
    """The partitions that the broker leads and will keep leading."""
    return tuple(one.name for one in standings if one.name not in plan and one.leader == broker_id)


def _off(lists: Lists, broker_id: int, racks: Racks) -> Plan:
    try:
        return off(lists, broker_id, racks)
    except OttlaError as error:
        raise OttlaError(
            error.code,
            f"{error.message}; to empty it of leaders only, `ottla broker drain {broker_id} "
            "--leaders`",
        ) from None
