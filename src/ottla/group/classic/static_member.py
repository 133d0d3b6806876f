"""A static member that restarts takes its old membership over (KIP-345, KIP-814)."""

from ottla.base.errors import ErrorCode
from ottla.group.classic.answers import joined, roster
from ottla.group.classic.causes import note_joining, note_returned
from ottla.group.classic.rebalance import (
    answer_waits,
    complete_if_all_joined,
    keep_alive,
    prepare,
    session_key,
)
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Call, Turn
from ottla.group.records.stored import GroupRecord
from ottla.group.values.member import Member, OfferedProtocol
from ottla.wire.messages.classic_membership import JoinGroupRequest, JoinGroupResponse

# From this version on an answer has SkipAssignment for the leader.
_SKIP_ASSIGNMENT_FROM = 9


def take_over(
    turn: Turn,
    group: Group,
    call: Call,
    request: JoinGroupRequest,
    protocols: tuple[OfferedProtocol, ...],
    member_id: str,
) -> None:
    """Give the caller the place of the member with its instance id, and fence that member.

    In a stable group whose assignor stays the same no rebalance is needed: the new process gets
    the old one's assignment.
    """
    assert request.group_instance_id is not None
    old_member_id = group.static_members[request.group_instance_id]
    old_leader = group.leader
    member = group.members[old_member_id]
    answer_waits(turn, member, ErrorCode.FENCED_INSTANCE_ID)
    turn.timers.cancel(session_key(group, old_member_id))
    group.replace(old_member_id, member_id)
    member.protocols = protocols
    member.session_timeout_ms = request.session_timeout_ms
    rebalance_ms = request.rebalance_timeout_ms
    member.rebalance_timeout_ms = member.session_timeout_ms if rebalance_ms < 0 else rebalance_ms
    member.client_id = call.client_id
    member.client_host = call.client_host
    keep_alive(turn, group, member)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        # Written unchanged under the new id, so that a new coordinator knows the member.
        note_returned(turn, group, member, is_trigger=False)
        turn.write(GroupRecord(group.group_id, group.to_stored()))
        turn.reply(call.ticket, _kept(group, member, call.version, old_leader or ""))
        return
    keep_in_log(turn, group, member)
    member.joining = call.ticket
    note_returned(turn, group, member, is_trigger=True)
    note_joining(turn, group, member)
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(turn, group)
    else:
        # The leader may already assign partitions to the old id.
        prepare(turn, group)


def keep_in_log(turn: Turn, group: Group, member: Member) -> None:
    """Have the log know the id of a static member whose instance id it has under another one.

    Else a new coordinator, which knows the group as before the rebalance, would fence the member
    for good. Kafka's does. The record changes no more than the id.
    """
    stored = group.stored
    if stored is None or member.group_instance_id is None:
        return
    renamed = stored.with_member_id(member.group_instance_id, member.member_id)
    if renamed is not stored:
        turn.write(GroupRecord(group.group_id, renamed))


def _kept(group: Group, member: Member, version: int, old_leader: str) -> JoinGroupResponse:
    """The present generation for a member that needs no rebalance.

    A leader of a new enough version gets SkipAssignment, and watches its topics; an older one
    gets the leader's old id, so that it does not take itself for the leader.
    """
    answer = joined(group, member)
    if member.member_id != group.leader:
        return answer
    if version >= _SKIP_ASSIGNMENT_FROM:
        answer.skip_assignment = True
        answer.members = roster(group)
    else:
        answer.leader = old_leader
        answer.members = []
    return answer
