"""Whether a member of the consumer protocol may commit, or ask for what was committed."""

from ottla.base.errors import ErrorCode
from ottla.group.consumer.group import ConsumerGroup


def validate_member_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> ErrorCode:
    """Only members in their present epoch: whoever is behind may have lost the partition."""
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    current = group.current.get(member_id)
    if current is None or current.epoch != epoch:
        if group.members[member_id].classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE
