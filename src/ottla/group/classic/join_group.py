"""JoinGroup: a member joins, or joins again (KIP-394: it needs a member id first).

A static member that restarts gets its old membership back (KIP-345, KIP-814).
"""

from ottla.base.errors import ErrorCode
from ottla.group.classic.causes import note_changed, note_joined, note_joining, note_returned
from ottla.group.classic.rebalance import (
    NO_MEMBER_ID,
    advance,
    answer_waits,
    complete_if_all_joined,
    join_refused,
    joined,
    keep_alive,
    prepare,
    roster,
    session_key,
)
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Call, Turn
from ottla.group.records.stored import GroupRecord
from ottla.group.values.member import Member, OfferedProtocol
from ottla.wire.messages.classic_membership import JoinGroupRequest, JoinGroupResponse

# From this version on a new dynamic member first gets its id and must join again with it, so
# that clients whose answer was lost leave no unknown members behind.
_MEMBER_ID_REQUIRED_FROM = 4
# The most member ids of a group that are handed out and not joined yet. A client joins with its id
# within moments; one that never does leaves an id for each request, until its session timeout.
_PENDING_MAX = 1_000
# The most characters of a client id that a member id contains.
_CLIENT_ID_CHARACTERS_MAX = 249


def check_session_timeout(turn: Turn, request: JoinGroupRequest) -> ErrorCode:
    """Check that the broker's settings allow the requested session timeout."""
    settings = turn.settings
    if (
        settings.min_session_timeout_ms
        <= request.session_timeout_ms
        <= settings.max_session_timeout_ms
    ):
        return ErrorCode.NONE
    return ErrorCode.INVALID_SESSION_TIMEOUT


def join(turn: Turn, group: Group, call: Call, request: JoinGroupRequest) -> None:
    """Let a member join `group`; the answer comes when the join phase ends."""
    member_id = request.member_id
    if not _has_room(turn, group, member_id):
        group.remove(member_id)
        turn.timers.cancel(session_key(group, member_id))
        turn.reply(call.ticket, join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
        return
    protocols = tuple(
        OfferedProtocol(each.name, bytes(each.metadata)) for each in request.protocols
    )
    if not group.accepts(request.protocol_type, protocols):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        turn.reply(call.ticket, join_refused(code, member_id))
    elif member_id == NO_MEMBER_ID:
        _join_first(turn, group, call, request, protocols)
    elif member_id in group.pending_joins and request.group_instance_id is None:
        _add(turn, group, call, request, protocols, member_id)
    else:
        _join_again(turn, group, call, request, protocols)


def _has_room(turn: Turn, group: Group, member_id: str) -> bool:
    member = group.members.get(member_id)
    size = turn.settings.max_size
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            waiting = sum(each.joining is not None for each in group.members.values())
            return (member is not None and member.joining is not None) or waiting < size
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return member is not None or len(group.members) < size


def _join_first(
    turn: Turn,
    group: Group,
    call: Call,
    request: JoinGroupRequest,
    protocols: tuple[OfferedProtocol, ...],
) -> None:
    """Join a caller without a member id: a new member, or a static one that has restarted."""
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = f"{instance_id}-{call.nonce}"
        if instance_id in group.static_members:
            take_over(turn, group, call, request, protocols, member_id)
        else:
            _add(turn, group, call, request, protocols, member_id)
        return
    member_id = f"{call.client_id[:_CLIENT_ID_CHARACTERS_MAX]}-{call.nonce}"
    if call.version < _MEMBER_ID_REQUIRED_FROM:
        _add(turn, group, call, request, protocols, member_id)
        return
    while len(group.pending_joins) >= _PENDING_MAX:
        oldest = next(iter(group.pending_joins))
        group.remove(oldest)
        turn.timers.cancel(session_key(group, oldest))
    group.pending_joins[member_id] = None
    turn.timers.set(session_key(group, member_id), turn.now_ms + request.session_timeout_ms)
    turn.reply(call.ticket, join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _join_again(
    turn: Turn,
    group: Group,
    call: Call,
    request: JoinGroupRequest,
    protocols: tuple[OfferedProtocol, ...],
) -> None:
    """Answer a caller with a member id: repeat the present generation, or start a rebalance."""
    member_id = request.member_id
    code = group.validate_member(member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        turn.reply(call.ticket, join_refused(code, member_id))
        return
    member = group.members[member_id]
    unchanged = member.protocols == protocols
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            update(turn, group, member, call, request, protocols)
            complete_if_all_joined(turn, group)
        case GroupState.COMPLETING_REBALANCE if unchanged:
            # It joined, but the answer was lost.
            turn.reply(call.ticket, joined(group, member))
        case GroupState.STABLE if unchanged and member_id != group.leader:
            turn.reply(call.ticket, joined(group, member))
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            # The leader joins again to have partitions assigned anew.
            note_changed(turn, group, member, request.reason, is_unchanged=unchanged)
            update(turn, group, member, call, request, protocols)
            prepare(turn, group)
        case _:
            turn.reply(call.ticket, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member_id))


def _add(
    turn: Turn,
    group: Group,
    call: Call,
    request: JoinGroupRequest,
    protocols: tuple[OfferedProtocol, ...],
    member_id: str,
) -> None:
    if not group.members:
        group.protocol_type = request.protocol_type
    if group.state is GroupState.PREPARING_REBALANCE and group.is_initial:
        group.is_member_added = True
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=call.client_id,
        client_host=call.client_host,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
        joining=call.ticket,
        is_new=True,
    )
    group.add(member)
    keep_in_log(turn, group, member)
    note_joined(turn, group, member, request.reason)
    # This timeout removes a client that is gone: a new member sends no heartbeats while it waits.
    turn.timers.set(
        session_key(group, member_id), turn.now_ms + turn.settings.new_member_join_timeout_ms
    )
    advance(turn, group)


def update(
    turn: Turn,
    group: Group,
    member: Member,
    call: Call,
    request: JoinGroupRequest,
    protocols: tuple[OfferedProtocol, ...],
) -> None:
    """Update a member from its JoinGroup; answer its earlier JoinGroup if that still waits."""
    if member.joining is not None:
        answer_waits(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    member.protocols = protocols
    member.rebalance_timeout_ms = rebalance_timeout_ms(request)
    member.session_timeout_ms = request.session_timeout_ms
    member.joining = call.ticket
    note_joining(turn, group, member)


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """How long the member may take to join again; before version 1 its session timeout."""
    timeout_ms = request.rebalance_timeout_ms
    return request.session_timeout_ms if timeout_ms < 0 else timeout_ms


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
    """Let the caller replace the static member that has its instance id, and fence that member.

    In a stable group whose assignor does not change, no rebalance is needed: the caller gets the
    assignment of the member that it replaces.
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
        # The group is written with the new member id, so that a new coordinator knows the member.
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
    """Write the member id of a static member to the log, if the log has an older id.

    Otherwise a new coordinator, which loads the group as it was before the rebalance, would fence
    the member for good, as in Kafka. The record changes only the member id.
    """
    stored = group.stored
    if stored is None or member.group_instance_id is None:
        return
    renamed = stored.with_member_id(member.group_instance_id, member.member_id)
    if renamed is not stored:
        turn.write(GroupRecord(group.group_id, renamed))


def _kept(group: Group, member: Member, version: int, old_leader: str) -> JoinGroupResponse:
    """Return the present generation for a static member that is back and needs no rebalance.

    If it is the leader and its version supports it, it gets SkipAssignment, and watches the topics.
    With an older version it gets the leader's old member id, so that it does not act as leader.
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
