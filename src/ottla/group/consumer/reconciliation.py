"""Leads a member from its current to its target assignment (KIP-848).

A member first revokes partitions, then gets new ones. A partition is assigned only once no other
member has it, so that two members never read the same one.
"""

from collections.abc import Callable, Collection

from ottla.group.records.consumer import Current, MemberState
from ottla.group.values.shares import NOTHING, AssignedSlot, Share

# Whether some other member has the partition, or has yet to revoke it.
IsTaken = Callable[[AssignedSlot], bool]


def reconcile(
    current: Current,
    target_epoch: int,
    target: Share,
    is_taken: IsTaken,
    owned: Collection[AssignedSlot] | None,
) -> Current:
    """The member's next step, or the same value where there is none.

    `owned` are the partitions that the member reports; None where it reports none.
    """
    match current.state:
        case MemberState.STABLE:
            if current.epoch == target_epoch:
                return current
            return _step(current, target_epoch, target, is_taken, owned)
        case MemberState.UNREVOKED_PARTITIONS:
            if owned is None or not current.revoking.isdisjoint(owned):
                return current
            return _step(current, target_epoch, target, is_taken, owned)
        case MemberState.UNRELEASED_PARTITIONS:
            return _step(current, target_epoch, target, is_taken, owned)


def _step(
    current: Current,
    target_epoch: int,
    target: Share,
    is_taken: IsTaken,
    owned: Collection[AssignedSlot] | None,
) -> Current:
    kept = current.assigned & target
    revoking = current.assigned - target
    if revoking and (owned is None or not revoking.isdisjoint(owned)):
        return Current(
            current.epoch,
            current.previous_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            kept,
            revoking,
            current.given,
        )
    wanted = target - kept
    free = frozenset(slot for slot in wanted if not is_taken(slot))
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED_PARTITIONS
    previous = current.previous_epoch if current.epoch == target_epoch else current.epoch
    given = {slot: current.given_in(slot) for slot in kept} | dict.fromkeys(free, target_epoch)
    after = Current(target_epoch, previous, state, kept | free, NOTHING, given)
    return current if after == current else after
