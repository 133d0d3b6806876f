"""Plans of moves: onto chosen brokers, evenly over all brokers, or off one broker."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStatus
from ottla.controller.balance import Lists, Racks, balanced, follow_only, off, onto
from ottla.diagnosis.partitions import standings_of
from ottla.operations.moves import MovePlan, OnDone, Plan, carry_out, lead_first, move_plan, sizes


async def plan_placement(
    admin: Admin,
    names: Sequence[TopicPartition],
    chosen: Collection[int] | None,
    replicas: int | None,
) -> MovePlan:
    """Plan to put `names` on the `chosen` brokers (None: all live brokers).

    `replicas` is the new replication factor (None: unchanged). Replicas that are on chosen
    brokers stay there. Raises INVALID_REPLICA_ASSIGNMENT if a chosen broker is not alive,
    INVALID_REPLICATION_FACTOR if there are fewer brokers than replicas, and
    UNKNOWN_TOPIC_OR_PARTITION.
    """
    found = await admin.cluster.describe()
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    targets = _chosen(racks, chosen)
    standings = await standings_of(admin, names)
    plan = onto({one.name: one.replicas for one in standings}, targets, replicas)
    return move_plan(plan, standings, await sizes(admin))


async def plan_reassignment(admin: Admin, wanted: Plan) -> tuple[MovePlan, list[PartitionStatus]]:
    """Return the moves of `wanted` that are still to do, and the partitions' states.

    Raises UNKNOWN_TOPIC_OR_PARTITION.
    """
    standings = await standings_of(admin, list(wanted))
    changed = {
        one.name: wanted[one.name] for one in standings if one.replicas != tuple(wanted[one.name])
    }
    return move_plan(changed, standings, await sizes(admin)), standings


def _chosen(
    racks: Mapping[int, str | None], chosen: Collection[int] | None
) -> dict[int, str | None]:
    strange = [broker for broker in chosen or () if broker not in racks]
    if strange:
        raise OttlaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"broker {strange[0]} is not alive; there are {sorted(racks)}",
        )
    return {broker: rack for broker, rack in racks.items() if chosen is None or broker in chosen}


@dataclass(frozen=True, slots=True)
class BalancePlan:
    """The moves of a balance, and the partitions whose first replica becomes leader again."""

    moves: MovePlan
    given_back: tuple[TopicPartition, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.moves.plan or self.given_back)


async def plan_balance(admin: Admin) -> BalancePlan:
    """Plan moves after which all brokers have about as many replicas and leaders.

    Partitions with a move in progress are counted with their new replicas, and not planned.
    """
    found = await admin.cluster.describe()
    standings = await admin.partitions.describe()
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    under_way = await admin.partitions.reassignments()
    ends = {name: move.target for name, move in under_way.items()}
    lists = {one.name: ends.get(one.name, one.replicas) for one in standings}
    plan = balanced(lists, racks, ends)
    moves = move_plan(plan, standings, await sizes(admin))
    return BalancePlan(moves, led_by_others(standings, {*plan, *ends}))


async def balance(admin: Admin, plan: BalancePlan, at_once: int, on_done: OnDone) -> None:
    """Apply the plan, `at_once` partitions at a time."""
    await carry_out(admin, plan.moves.plan, at_once, on_done)
    if plan.given_back:
        await lead_first(admin, plan.given_back)


def led_by_others(
    standings: Iterable[PartitionStatus], besides: Collection[TopicPartition]
) -> tuple[TopicPartition, ...]:
    """Return partitions whose first replica is in sync but not leader, except `besides`."""
    return tuple(
        one.name
        for one in standings
        if one.name not in besides and one.leader != one.replicas[0] and one.replicas[0] in one.isr
    )


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """The moves off a broker. `stay` are partitions that no other broker can lead."""

    moves: MovePlan
    stay: tuple[TopicPartition, ...]


async def plan_drain(admin: Admin, broker_id: int, *, only_leaders: bool) -> DrainPlan:
    """Plan to move all replicas, or only all leaderships, from a broker to others.

    Raises BROKER_NOT_AVAILABLE if the broker does not exist and has no replicas, and
    INVALID_REPLICATION_FACTOR if there are too few other brokers for its replicas.
    """
    found = await admin.cluster.describe()
    standings = await admin.partitions.describe()
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
    standings: Iterable[PartitionStatus], plan: Plan, broker_id: int
) -> tuple[TopicPartition, ...]:
    """Return the partitions that the broker leads, and leads still after the plan."""
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
