"""The throttle of moves (KIP-73): a rate on each broker for the replicas of a plan."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigResourceType
from ottla.client.admin.partitions import PartitionStatus
from ottla.operations.moves import Plan

_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LEADERS = "leader.replication.throttled.replicas"
_FOLLOWERS = "follower.replication.throttled.replicas"
_ALL = "*"


async def throttle(
    admin: Admin,
    plan: Plan,
    standings: Iterable[PartitionStatus],
    bytes_per_s: int,
) -> None:
    """Limit the rate of the plan's copies on each broker, as kafka-reassign-partitions does."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for one in standings:
        if one.name not in plan:
            continue
        topic, index = one.name
        new = [broker for broker in plan[one.name] if broker not in one.replicas]
        if new:
            leaders.setdefault(topic, []).extend(f"{index}:{broker}" for broker in one.replicas)
            followers.setdefault(topic, []).extend(f"{index}:{broker}" for broker in new)
    for setting, lists in ((_LEADERS, leaders), (_FOLLOWERS, followers)):
        for topic, replicas in lists.items():
            await _list(admin, topic, setting, replicas)
    for broker_id in await admin.cluster.brokers() if leaders else ():
        await admin.configs.alter(
            ConfigResourceType.BROKER, str(broker_id), dict.fromkeys(_RATES, str(bytes_per_s))
        )


async def remove_throttle(admin: Admin) -> list[str]:
    """Remove all rates and replica lists of throttles; return the topics that were throttled.

    Raises OttlaError(REASSIGNMENT_IN_PROGRESS) while a partition moves.
    """
    moving = await admin.partitions.reassignments()
    if moving:
        raise OttlaError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"{counted(len(moving), 'partition')} not moved yet, {min(moving)} among them; wait "
            "for their end (`ottla partition status --wait`)",
        )
    for broker_id in await admin.cluster.brokers():
        await admin.configs.alter(ConfigResourceType.BROKER, str(broker_id), dict.fromkeys(_RATES))
    throttled: list[str] = []
    for view in await admin.topics.all(internal=True):
        keys = (_LEADERS, _FOLLOWERS)
        held = await admin.configs.describe(ConfigResourceType.TOPIC, view.name, keys)
        if any(entry.value for entry in held.values()):
            await admin.configs.alter(ConfigResourceType.TOPIC, view.name, dict.fromkeys(keys))
            throttled.append(view.name)
    return throttled


async def _list(admin: Admin, topic: str, setting: str, replicas: list[str]) -> None:
    """Add replicas to the list in a topic's setting, unless it has them all."""
    held = (await admin.configs.describe(ConfigResourceType.TOPIC, topic, [setting]))[setting].value
    if held != _ALL:
        await admin.configs.alter(
            ConfigResourceType.TOPIC, topic, {}, append={setting: ",".join(replicas)}
        )
