"""Moves partitions to other brokers, step by step (KIP-455).

The partition's state holds the whole move: `replicas` has old and new replicas, `adding` and
`removing` name the new and the leaving ones. So a move survives the death of the controller: the
next controller reads its progress. Each step raises the leader epoch, so that the leader only
counts fetches of that epoch when it decides which followers are in sync (S11).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.controller.election import Change, How, Live, Rules, led
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.in_sync import without_members
from ottla.metadata.topic_plan import Registered, shared_rack

_NONE_REGISTERED: Registered = {}


def target(partition: PartitionImage) -> tuple[BrokerId, ...]:
    """The replicas after a reassignment; without one, the present replicas."""
    return tuple(broker for broker in partition.replicas if broker not in partition.removing)


def origin(partition: PartitionImage) -> tuple[BrokerId, ...]:
    """The replicas before a reassignment; without one, the present replicas."""
    return tuple(broker for broker in partition.replicas if broker not in partition.adding)


def begin(
    partition: PartitionImage,
    wanted: Sequence[int],
    live: Live,
    rules: Rules,
    *,
    registered: Registered = _NONE_REGISTERED,
    may_change_factor: bool = True,
    apart: bool = False,
) -> Change:
    """Start a reassignment to `wanted`, or redirect one in progress. Raises OttlaError.

    A move that only reorders, or that waits for no replica, is complete at once. Dead brokers that
    are `registered` may be named, as in Kafka: the move waits until they are back. With `apart`,
    no new replica may share the rack of another.
    """
    old = origin(partition)
    check_target(wanted, {*live, *registered}, old)
    goal = tuple(BrokerId(broker) for broker in wanted)
    added = [broker for broker in goal if broker not in old]
    if apart and (complaint := shared_rack(goal, registered, added)):
        raise _bad_target(wanted, complaint)
    if not may_change_factor and len(goal) != len(old):
        raise OttlaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the move would change the replication factor from {len(old)} to "
            f"{len(goal)}; allow that, or name as many brokers",
        )
    replicas = goal + tuple(broker for broker in old if broker not in goal)
    moved = partition._replace(
        replicas=replicas,
        adding=tuple(added),
        removing=tuple(broker for broker in old if broker not in goal),
    )
    check_copies(partition, replicas, rules)
    begun = _restricted(moved, replicas, live, rules, f"move to {list(goal)} asked for")
    done = complete(begun.after, live, rules)
    # Two changes in one step raise the leader epoch once.
    return begun if done is None else _same_term(done, begun.after.leader_epoch)


def complete(partition: PartitionImage, live: Live, rules: Rules) -> Change | None:
    """Complete a reassignment if its target replicas are all in sync.

    Returns None if there is no reassignment, or if it cannot be completed yet.
    """
    goal = target(partition)
    if not partition.is_moving and goal == partition.replicas:
        return None
    if any(broker not in partition.isr for broker in goal):
        return None
    if partition.leader not in goal and not any(broker in live for broker in goal):
        return None
    ended = partition._replace(replicas=goal, adding=(), removing=())
    return _restricted(ended, goal, live, rules, f"all of {list(goal)} are in sync")


def cancel(partition: PartitionImage, live: Live, rules: Rules) -> Change:
    """Cancel a reassignment, and restore the replicas from before it.

    Raises OttlaError(NO_REASSIGNMENT_IN_PROGRESS), OttlaError(INVALID_REPLICA_ASSIGNMENT).
    """
    if not partition.is_moving:
        raise OttlaError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no move of this partition is under way"
        )
    old = origin(partition)
    in_sync = [broker for broker in partition.isr if broker in old]
    if partition.isr and not in_sync:
        raise OttlaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"only new replicas {list(partition.isr)} are in sync: going back would lose "
            "records; wait until an old one has caught up, or let the move end",
        )
    check_copies(partition, old, rules)
    ended = partition._replace(replicas=old, adding=(), removing=())
    return _restricted(ended, old, live, rules, "move cancelled")


def check_copies(partition: PartitionImage, kept: Collection[BrokerId], rules: Rules) -> None:
    """Refuse to keep only the replicas `kept` if too few of them have all committed records.

    A changed or cancelled move drops new replicas that may be in sync already. With
    fewer copies than `min.insync.replicas` one power cut could lose acknowledged records. Raises
    OttlaError(INVALID_REPLICA_ASSIGNMENT).
    """
    # If ISR and ELR are empty, the records are on some of the last known ELR.
    holders = partition.isr + partition.elr or partition.last_known_elr
    gone = [broker for broker in holders if broker not in kept]
    left = len(holders) - len(gone)
    needed = min(rules.min_isr, len(kept)) if partition.isr or partition.elr else len(holders)
    if not gone or left >= needed:
        return
    raise OttlaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"of the replicas {list(holders)} that hold all records {gone} would go and only {left} "
        f"stay, of {needed} needed (min.insync.replicas); wait until others have caught up, let "
        "the move end, or keep those",
    )


def check_target(
    wanted: Sequence[int], registered: Collection[BrokerId], present: Collection[BrokerId]
) -> None:
    """Check a replica list. Raises OttlaError(INVALID_REPLICA_ASSIGNMENT)."""
    strange = [broker for broker in wanted if broker not in registered and broker not in present]
    if not wanted:
        complaint = "it is empty"
    elif len(set(wanted)) < len(wanted):
        complaint = "it names a broker twice"
    elif min(wanted) < 0:
        complaint = "it has a negative broker id"
    elif strange:
        complaint = f"no broker {strange[0]} is registered"
    else:
        return
    raise _bad_target(wanted, complaint)


def _bad_target(wanted: Sequence[int], complaint: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"the replica list {list(wanted)} cannot be: {complaint}",
    )


def _restricted(
    partition: PartitionImage,
    replicas: tuple[BrokerId, ...],
    live: Live,
    rules: Rules,
    cause: str,
) -> Change:
    """Restrict ISR, ELR and leader to `replicas`, in a new leader epoch."""
    gone = [broker for broker in partition.isr if broker not in replicas]
    kept = partition._replace(
        isr=tuple(broker for broker in partition.isr if broker in replicas),
        elr=tuple(broker for broker in partition.elr if broker in replicas),
        last_known_elr=tuple(b for b in partition.last_known_elr if b in replicas),
    )
    kept = without_members(kept, (), rules.min_isr)
    evidence = f"ISR {list(partition.isr)}" + (f", of which {gone} go" if gone else "")
    if partition.leader in replicas or partition.leader == NO_LEADER:
        return Change(kept._replace(leader_epoch=kept.leader_epoch + 1), None, cause, evidence)
    candidates = [b for b in replicas if b in kept.isr and b in live]
    if not candidates:
        after = kept._replace(
            leader=NO_LEADER,
            leader_epoch=kept.leader_epoch + 1,
            leader_broker_epoch=0,
        )
        return Change(after, How.NO_LEADER, cause, evidence)
    return Change(led(kept, candidates[0], live), How.REASSIGNMENT, cause, evidence)


def _same_term(change: Change, leader_epoch: int) -> Change:
    return replace(change, after=change.after._replace(leader_epoch=leader_epoch))
