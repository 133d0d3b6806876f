"""Whether a member of the consumer protocol may commit or fetch offsets."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.records import Current
from ottla.group.consumer.shares import AssignedSlot


def validate_member_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> ErrorCode:
    """Refuse a member that is not in its present epoch, as it may have lost the partition."""
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    current = group.current.get(member_id)
    if current is None or current.epoch != epoch:
        if group.members[member_id].classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def validate_commit_epoch(
    group: ConsumerGroup, member_id: str, epoch: int, slots: Iterable[AssignedSlot]
) -> ErrorCode:
    """As `validate_member_epoch`, but an earlier epoch may commit what the member has kept since.

    KIP-1251: a commit that was on its way while the epoch rose need not be sent again. It is
    refused as a whole if one of `slots` was assigned to the member later, or is not its own.
    """
    code = validate_member_epoch(group, member_id, epoch)
    current = group.current.get(member_id)
    if code in _EARLIER and current is not None and 0 < epoch < current.epoch:
        return ErrorCode.NONE if all(_is_kept(current, slot, epoch) for slot in slots) else code
    return code


_EARLIER = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)


def _is_kept(current: Current, slot: AssignedSlot, epoch: int) -> bool:
    is_held = slot in current.assigned or slot in current.revoking
    return is_held and current.given_in(slot) <= epoch
