"""From one generation to the next: all members must join again, and one becomes leader.

prepare -> members join -> complete -> (syncing) the leader's assignment -> stable
"""

from ottla.base.errors import ErrorCode
from ottla.group.classic.causes import note_did_not_join, note_did_not_sync
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Turn
from ottla.group.records.stored import GroupRecord
from ottla.group.values.member import Member
from ottla.group.values.notes import Formed, Settled
from ottla.group.values.timers import Due, TimerKey
from ottla.wire.messages.classic_membership import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)


def join_key(group: Group) -> TimerKey:
    """The key of the timer that ends the join phase."""
    return TimerKey(Due.JOIN, group.group_id)


def sync_key(group: Group) -> TimerKey:
    """The key of the timer that ends the sync phase."""
    return TimerKey(Due.SYNC, group.group_id)


def session_key(group: Group, member_id: str) -> TimerKey:
    """The key of the timer that ends a member's session."""
    return TimerKey(Due.SESSION, group.group_id, member_id)


def keep_alive(turn: Turn, group: Group, member: Member) -> None:
    """Restart the session timeout of a member."""
    turn.timers.set(session_key(group, member.member_id), turn.now_ms + member.session_timeout_ms)


def advance(turn: Turn, group: Group) -> None:
    """Act on a change of members: start a rebalance, or end its join phase if all have joined."""
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(turn, group)
    else:
        prepare(turn, group)


def prepare(turn: Turn, group: Group) -> None:
    """Start a rebalance: all members must join again. Waiting SyncGroups are answered at once.

    The join phase of an empty group's first rebalance lasts `group.initial.rebalance.delay.ms`,
    and longer while members keep arriving (KIP-134). Later ones last until all have joined.
    """
    group.is_initial = group.state is GroupState.EMPTY
    if group.state is GroupState.COMPLETING_REBALANCE:
        _give_up_assignment(turn, group)
    turn.timers.cancel(sync_key(group))
    group.enter(GroupState.PREPARING_REBALANCE, turn.timestamp_ms)
    if not group.is_initial:
        if group.all_joined:
            complete(turn, group)
        else:
            turn.timers.set(join_key(group), turn.now_ms + group.rebalance_timeout_ms)
        return
    delay_ms = turn.settings.initial_rebalance_delay_ms
    group.is_member_added = False
    group.remaining_delay_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    if delay_ms <= 0:
        complete(turn, group)
    else:
        turn.timers.set(join_key(group), turn.now_ms + delay_ms)


def on_join_deadline(turn: Turn, group: Group) -> None:
    """End the join phase at its deadline.

    In an empty group's first rebalance it is extended instead if members have arrived since the
    last deadline was set and `remaining_delay_ms` is left (KIP-134).
    """
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if group.is_initial and group.is_member_added and group.remaining_delay_ms > 0:
        group.is_member_added = False
        delay_ms = min(turn.settings.initial_rebalance_delay_ms, group.remaining_delay_ms)
        group.remaining_delay_ms -= delay_ms
        turn.timers.set(join_key(group), turn.now_ms + delay_ms)
    elif group.is_initial:
        delay_ms = turn.settings.initial_rebalance_delay_ms
        complete(turn, group, f"group.initial.rebalance.delay.ms={delay_ms}")
    else:
        complete(turn, group, f"max.poll.interval.ms={group.rebalance_timeout_ms}")


def complete_if_all_joined(turn: Turn, group: Group) -> None:
    """End the join phase if all members have joined.

    In an empty group's first rebalance it ends only at its deadline.
    """
    if group.state is GroupState.PREPARING_REBALANCE and group.all_joined and not group.is_initial:
        complete(turn, group)


def complete(turn: Turn, group: Group, ended_by: str | None = None) -> None:
    """End the join phase with the members that have joined: a new generation begins.

    Dynamic members that did not join are removed; static ones stay until their session ends.
    `ended_by` is the setting that ended the join phase, None if all had joined.
    """
    turn.timers.cancel(join_key(group))
    timeout_ms = group.rebalance_timeout_ms
    for member in list(group.members.values()):
        if member.joining is None and not member.is_static:
            note_did_not_join(turn, group, member, timeout_ms)
            group.remove(member.member_id)
            turn.timers.cancel(session_key(group, member.member_id))
    if group.members and not _elect_joined_leader(group):
        # Only static members are left, and none has joined: they stay until their sessions end.
        turn.timers.set(join_key(group), turn.now_ms + group.rebalance_timeout_ms)
        return
    group.generation += 1
    group.is_initial = False
    if not group.members:
        group.protocol_name = None
        group.enter(GroupState.EMPTY, turn.timestamp_ms)
        turn.write(GroupRecord(group.group_id, group.to_stored()))
        turn.note(Settled(group.group_id, group.generation, 0, 0, 0))
        return
    turn.note(Formed(group.group_id, group.generation, ended_by))
    group.protocol_name = group.select_protocol()
    group.refresh_subscription()
    group.enter(GroupState.COMPLETING_REBALANCE, turn.timestamp_ms)
    group.pending_syncs = set(group.members)
    for member in group.members.values():
        if member.joining is not None:
            turn.reply(member.joining, joined(group, member))
            member.joining = None
        member.is_new = False
        keep_alive(turn, group, member)
    turn.timers.set(sync_key(group), turn.now_ms + group.rebalance_timeout_ms)


def on_sync_deadline(turn: Turn, group: Group) -> None:
    """Remove members that have not sent SyncGroup in time, and start another rebalance."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    if not group.pending_syncs:
        return
    timeout_ms = group.rebalance_timeout_ms
    for member_id in sorted(group.pending_syncs):
        note_did_not_sync(turn, group, group.members[member_id], timeout_ms)
        group.remove(member_id)
        turn.timers.cancel(session_key(group, member_id))
    prepare(turn, group)


def dismiss(turn: Turn, group: Group, member_id: str, code: ErrorCode) -> None:
    """Remove a member, and answer its waiting request with `code`. The caller calls `advance`."""
    turn.timers.cancel(session_key(group, member_id))
    member = group.remove(member_id)
    if member is not None:
        answer_waits(turn, member, code)


def answer_waits(turn: Turn, member: Member, code: ErrorCode) -> None:
    """Answer a member's waiting request with an error."""
    if member.joining is not None:
        named = NAMED_IN_REFUSAL.get(code, False)
        turn.reply(member.joining, join_refused(code, member.member_id if named else ""))
        member.joining = None
    if member.syncing is not None:
        turn.reply(member.syncing, sync_refused(code))
        member.syncing = None


# Errors of JoinGroup that repeat the member id; other errors make the client request a new one.
NAMED_IN_REFUSAL = {ErrorCode.FENCED_INSTANCE_ID: True, ErrorCode.REBALANCE_IN_PROGRESS: True}


def _give_up_assignment(turn: Turn, group: Group) -> None:
    """Drop all assignments; answer waiting SyncGroup requests with REBALANCE_IN_PROGRESS."""
    for member in group.members.values():
        member.assignment = b""
        if member.syncing is not None:
            turn.reply(member.syncing, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
            member.syncing = None
            keep_alive(turn, group, member)


def _elect_joined_leader(group: Group) -> bool:
    """Choose a leader that has joined, unless the present one has; False if none has joined."""
    if group.leader is not None and group.members[group.leader].joining is not None:
        return True
    for member in group.members.values():
        if member.joining is not None:
            group.leader = member.member_id
            return True
    return False


NO_MEMBER_ID = ""


def join_refused(code: ErrorCode, member_id: str = NO_MEMBER_ID) -> JoinGroupResponse:
    """The answer to a JoinGroup that failed; with MEMBER_ID_REQUIRED it has the member id to use.

    It names no protocol; for versions before 7, which cannot send null, the shell sends "".
    """
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(group: Group, member: Member) -> JoinGroupResponse:
    """The JoinGroup response to a member; the leader's also lists all members."""
    leads = member.member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=roster(group) if leads else [],
    )


def roster(group: Group) -> list[JoinGroupResponseMember]:
    """All members, as their leader needs them to assign partitions."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    """The answer to a SyncGroup that failed."""
    return SyncGroupResponse(error_code=code)


def synced(group: Group, assignment: bytes) -> SyncGroupResponse:
    """The SyncGroup response with a member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )
