"""Plans that put partitions on chosen brokers, and reassignments by a replica list."""

from collections.abc import Collection, Mapping, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.controller.balance import onto
from ottla.diagnosis.partitions import standings_of
from ottla.operations.moves import sizes
from ottla.operations.plans import MovePlan, Plan, move_plan


async def plan_placement(
    admin: Admin,
    names: Sequence[TopicPartition],
    chosen: Collection[int] | None,
    replicas: int | None,
) -> MovePlan:
    """Plan to put `names` on the `chosen` brokers (None: all live ones), with as many replicas.

    Replicas that are on chosen brokers stay there. Raises INVALID_REPLICA_ASSIGNMENT where a
    chosen broker is not alive, INVALID_REPLICATION_FACTOR where they are too few for the
    replicas, and UNKNOWN_TOPIC_OR_PARTITION.
    """
    found = await admin.cluster.describe()
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    targets = _chosen(racks, chosen)
    standings = await standings_of(admin, names)
    plan = onto({one.name: one.replicas for one in standings}, targets, replicas)
    return move_plan(plan, standings, await sizes(admin))


async def plan_reassignment(admin: Admin, wanted: Plan) -> tuple[MovePlan, list[PartitionStanding]]:
    """The part of `wanted` that is still to do, and the partitions' state.

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
