"""SyncGroup, Heartbeat and LeaveGroup, and the end of sessions without heartbeats.

The leader sends the assignment in its SyncGroup; the other members wait for their assignments. One
LeaveGroup removes one or many members; static members may be named by instance id only.
"""

from ottla.base.errors import ErrorCode
from ottla.group.classic.causes import (
    note_left,
    note_never_came,
    note_settled,
    note_share,
    note_silent,
)
from ottla.group.classic.rebalance import (
    advance,
    answer_waits,
    complete_if_all_joined,
    dismiss,
    keep_alive,
    on_join_deadline,
    on_sync_deadline,
    sync_key,
    sync_refused,
    synced,
)
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Call, Turn
from ottla.group.records.stored import GroupRecord
from ottla.group.values.timers import Due, TimerKey
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    LeaveGroupRequest,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
)


def sync(turn: Turn, group: Group, call: Call, request: SyncGroupRequest) -> None:
    """Answer with the member's assignment, at once or when the leader has sent it."""
    code = _validate_sync(group, request)
    if code is not ErrorCode.NONE:
        turn.reply(call.ticket, sync_refused(code))
        return
    member = group.members[request.member_id]
    group.pending_syncs.discard(request.member_id)
    if not group.pending_syncs:
        turn.timers.cancel(sync_key(group))
    if group.state is GroupState.STABLE:
        keep_alive(turn, group, member)
        note_share(turn, group, member.member_id, member.assignment)
        turn.reply(call.ticket, synced(group, member.assignment))
        return
    answer_waits(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    member.syncing = call.ticket
    if request.member_id == group.leader:
        _share_out(turn, group, request)


def _share_out(turn: Turn, group: Group, request: SyncGroupRequest) -> None:
    """Write the leader's assignment; applying it makes the group stable (P11).

    Members that the leader left out get an empty assignment; unknown members are dropped.
    """
    shares = {each.member_id: bytes(each.assignment) for each in request.assignments}
    turn.write(GroupRecord(group.group_id, group.to_stored(shares)))
    for member in group.members.values():
        if member.syncing is not None:
            share = shares.get(member.member_id, b"")
            note_share(turn, group, member.member_id, share)
            turn.reply(member.syncing, synced(group, share))
            member.syncing = None
            keep_alive(turn, group, member)
    note_settled(turn, group, shares)


def _validate_sync(group: Group, request: SyncGroupRequest) -> ErrorCode:
    code = group.validate_member(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name not in (None, group.protocol_name)
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def heartbeat(turn: Turn, group: Group, request: HeartbeatRequest) -> ErrorCode:
    """Renew the member's session; REBALANCE_IN_PROGRESS asks it to join again."""
    code = group.validate_member(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    keep_alive(turn, group, group.members[request.member_id])
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def on_deadline(turn: Turn, group: Group, key: TimerKey) -> None:
    """Act on a deadline of the group that has passed."""
    match key.due:
        case Due.JOIN:
            on_join_deadline(turn, group)
        case Due.SYNC:
            on_sync_deadline(turn, group)
        case Due.SESSION:
            _on_session_end(turn, group, key.member_id)


def _on_session_end(turn: Turn, group: Group, member_id: str) -> None:
    """Remove a member, or a handed-out member id, whose session has expired."""
    if member_id in group.pending_joins:
        del group.pending_joins[member_id]
        note_never_came(turn, group, member_id)
        complete_if_all_joined(turn, group)
        return
    member = group.members.get(member_id)
    # A member that waits for our answer is not silent; its session starts anew with the answer.
    if member is None or member.is_waiting:
        return
    note_silent(turn, group, member)
    # If a new member still waits in its join, this error makes it join again.
    dismiss(turn, group, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    advance(turn, group)


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
    """Answer all leaving members with the same error."""
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
