"""The broker decisions that explain a partition's leader and ISR, and a group's rebalances."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.decisions import DecisionHistory, RebalanceHistory
from ottla.client.admin.groups import GroupDescription
from ottla.client.admin.partitions import PartitionStatus
from ottla.diagnosis.partitions import standings_of
from ottla.metadata.decisions import DecisionKind

# Elections are included: they remove dead replicas from the ISR.
ABOUT_ISR = (
    DecisionKind.CREATED,
    DecisionKind.ISR_SHRUNK,
    DecisionKind.ISR_EXPANDED,
    DecisionKind.ISR_REFUSED,
    DecisionKind.FENCED,
    DecisionKind.TRUNCATED,
    DecisionKind.RESTARTED,
    DecisionKind.ELECTED,
    DecisionKind.NO_LEADER,
)
ABOUT_LEADER = (
    DecisionKind.CREATED,
    DecisionKind.ELECTED,
    DecisionKind.NO_LEADER,
    DecisionKind.RESIGNED,
)


async def story_of(
    admin: Admin, name: TopicPartition, kinds: Sequence[DecisionKind]
) -> tuple[PartitionStatus, DecisionHistory]:
    """Return the state of `name`, and the decisions of these kinds that brokers remember.

    Raises UNKNOWN_TOPIC_OR_PARTITION, and UnsupportedByBroker if the brokers are not Ottla's.
    """
    (standing,) = await standings_of(admin, [name])
    return standing, await admin.decisions.describe(name, kinds)


async def rebalances_of(admin: Admin, group_id: str) -> tuple[GroupDescription, RebalanceHistory]:
    """Return a group's state and its remembered rebalances.

    Raises OttlaError GROUP_ID_NOT_FOUND, and UnsupportedByBroker if no broker is Ottla's.
    """
    group = await admin.groups.describe(group_id)
    if group.state == "Dead":
        raise OttlaError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"no such group: {group_id}; `ottla group list` names those there are",
        )
    return group, await admin.rebalances.describe(group_id)
