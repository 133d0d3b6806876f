"""LeaveGroup: members go, one or many at once; static ones may be named by instance id only."""

from ottla.base.errors import ErrorCode
from ottla.group.classic.causes import note_left
from ottla.group.classic.rebalance import advance, dismiss
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Turn
from ottla.wire.messages.classic_membership import LeaveGroupRequest, MemberIdentity, MemberResponse


def leaving_members(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    """The members that leave; before version 3 a request names one member."""
    if version < 3:
        return [MemberIdentity(member_id=request.member_id)]
    return request.members


def leave(turn: Turn, group: Group, leaving: list[MemberIdentity]) -> list[MemberResponse]:
    """Remove the members, and start a rebalance of the rest."""
    answers = [
        MemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=_leave_one(turn, group, each),
        )
        for each in leaving
    ]
    gone = any(answer.error_code == ErrorCode.NONE for answer in answers)
    if gone and group.state is not GroupState.EMPTY:
        advance(turn, group)
    return answers


def refused(leaving: list[MemberIdentity], code: ErrorCode) -> list[MemberResponse]:
    """The same error for all members."""
    return [
        MemberResponse(
            member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
        )
        for each in leaving
    ]


def _leave_one(turn: Turn, group: Group, leaving: MemberIdentity) -> ErrorCode:
    member_id = leaving.member_id
    instance_id = leaving.group_instance_id
    if not member_id and instance_id is not None:
        # An administrator removes a static member without knowing its member id.
        found = group.static_members.get(instance_id)
        if found is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = found
    elif member_id not in group.pending_joins:
        code = group.validate_member(member_id, instance_id)
        if code is not ErrorCode.NONE:
            return code
    member = group.members.get(member_id)
    if member is not None:
        note_left(turn, group, member, leaving.reason)
    dismiss(turn, group, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    return ErrorCode.NONE
