"""The states of partitions and replicas, and which may follow which.

They are read off what is known, not kept beside it, so that they cannot disagree with it. The
tables say what the controller may bring about; a step outside them is a mistake of ours.
"""

from collections.abc import Container
from enum import StrEnum

from ottla.base.ids import BrokerId
from ottla.metadata.image import NO_LEADER, PartitionImage


class PartitionState(StrEnum):
    """Where a partition is in its life."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"


class ReplicaState(StrEnum):
    """Where a replica is in its life."""

    NON_EXISTENT = "non-existent"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    DELETION_STARTED = "deletion started"
    DELETION_INELIGIBLE = "deletion waits for its broker"
    DELETED = "deleted"


_PARTITION_STEPS = {
    PartitionState.NON_EXISTENT: {PartitionState.NEW},
    PartitionState.NEW: {PartitionState.ONLINE, PartitionState.OFFLINE},
    PartitionState.ONLINE: {PartitionState.ONLINE, PartitionState.OFFLINE},
    PartitionState.OFFLINE: {
        PartitionState.OFFLINE,
        PartitionState.ONLINE,
        PartitionState.NON_EXISTENT,
    },
}
_REPLICA_STEPS = {
    ReplicaState.NON_EXISTENT: {ReplicaState.NEW},
    ReplicaState.NEW: {ReplicaState.ONLINE, ReplicaState.OFFLINE},
    ReplicaState.ONLINE: {ReplicaState.ONLINE, ReplicaState.OFFLINE},
    ReplicaState.OFFLINE: {
        ReplicaState.OFFLINE,
        ReplicaState.ONLINE,
        ReplicaState.DELETION_STARTED,
        ReplicaState.DELETION_INELIGIBLE,
    },
    ReplicaState.DELETION_STARTED: {ReplicaState.DELETED, ReplicaState.DELETION_INELIGIBLE},
    ReplicaState.DELETION_INELIGIBLE: {ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED},
    ReplicaState.DELETED: {ReplicaState.NON_EXISTENT},
}


def partition_state(
    partition: PartitionImage | None, live: Container[BrokerId], *, deleting: bool = False
) -> PartitionState:
    """The state of a partition; None stands for one that is not, or no longer, there."""
    if partition is None:
        return PartitionState.NON_EXISTENT
    if deleting or partition.leader == NO_LEADER or partition.leader not in live:
        return PartitionState.OFFLINE
    return PartitionState.ONLINE


def replica_state(
    broker: BrokerId,
    partition: PartitionImage | None,
    live: Container[BrokerId],
    *,
    deleting: bool = False,
    deleted: bool = False,
) -> ReplicaState:
    """The state of one replica; `deleted` where its broker has confirmed that it is gone."""
    if partition is None or broker not in partition.replicas:
        return ReplicaState.NON_EXISTENT
    if deleted:
        return ReplicaState.DELETED
    if deleting:
        alive = broker in live
        return ReplicaState.DELETION_STARTED if alive else ReplicaState.DELETION_INELIGIBLE
    return ReplicaState.ONLINE if broker in live else ReplicaState.OFFLINE


def partition_may(before: PartitionState, after: PartitionState) -> bool:
    """Whether a partition may go from one state to the other in one step."""
    return after in _PARTITION_STEPS[before]


def replica_may(before: ReplicaState, after: ReplicaState) -> bool:
    """Whether a replica may go from one state to the other in one step."""
    return after in _REPLICA_STEPS[before]
