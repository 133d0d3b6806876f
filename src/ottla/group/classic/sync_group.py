"""SyncGroup: the leader brings the assignment, the other members wait for theirs."""

from ottla.base.errors import ErrorCode
from ottla.group.classic.answers import sync_refused, synced
from ottla.group.classic.causes import note_settled, note_share
from ottla.group.classic.rebalance import answer_waits, keep_alive, sync_key
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Call, Turn
from ottla.group.records.stored import GroupRecord
from ottla.wire.messages.classic_membership import SyncGroupRequest


def sync(turn: Turn, group: Group, call: Call, request: SyncGroupRequest) -> None:
    """Answer with the member's assignment, now or once the leader has brought it."""
    code = _validate(group, request)
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


def _validate(group: Group, request: SyncGroupRequest) -> ErrorCode:
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
