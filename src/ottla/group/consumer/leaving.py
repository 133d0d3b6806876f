"""LeaveGroup for a group of the consumer protocol: an administrator removes members (KIP-345)."""

from ottla.base.errors import ErrorCode
from ottla.group.consumer.causes import note_left
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.membership import remove
from ottla.group.turn import Turn
from ottla.wire.messages.leave_group import MemberIdentity, MemberResponse


def leave(turn: Turn, group: ConsumerGroup, leaving: list[MemberIdentity]) -> list[MemberResponse]:
    """Remove the members; a static one may be named by its instance id alone."""
    return [
        MemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=_leave_one(turn, group, each),
        )
        for each in leaving
    ]


def _leave_one(turn: Turn, group: ConsumerGroup, leaving: MemberIdentity) -> ErrorCode:
    member_id = leaving.member_id
    if leaving.group_instance_id is not None:
        holder = group.static_members.get(leaving.group_instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_id not in ("", holder):
            return ErrorCode.FENCED_INSTANCE_ID
        member_id = holder
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.members[member_id].classic is None:
        words = "an administrator put it out"
    else:
        words = f"it left: {leaving.reason}" if leaving.reason else "it left"
    note_left(turn, group, member_id, words)
    remove(turn, group, member_id)
    return ErrorCode.NONE
