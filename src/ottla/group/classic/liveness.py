"""Heartbeats, and the end of sessions without them."""

from ottla.base.errors import ErrorCode
from ottla.group.classic.causes import note_never_came, note_silent
from ottla.group.classic.rebalance import (
    advance,
    complete_if_all_joined,
    dismiss,
    keep_alive,
    on_join_deadline,
    on_sync_deadline,
)
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Turn
from ottla.group.values.timers import Due, TimerKey
from ottla.wire.messages.classic_membership import HeartbeatRequest


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
    """Remove a member, or a handed-out id, without a heartbeat in time."""
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
    # A new member that still waits in its join is answered to try again.
    dismiss(turn, group, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    advance(turn, group)
