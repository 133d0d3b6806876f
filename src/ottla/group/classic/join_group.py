"""JoinGroup: a member joins, or joins again (KIP-394: it needs an id first; KIP-345: static)."""

from ottla.base.errors import ErrorCode
from ottla.group.classic.answers import NO_MEMBER_ID, join_refused, joined
from ottla.group.classic.causes import note_changed, note_joined, note_joining
from ottla.group.classic.rebalance import (
    advance,
    answer_waits,
    complete_if_all_joined,
    prepare,
    session_key,
)
from ottla.group.classic.static_member import keep_in_log, take_over
from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Call, Turn
from ottla.group.values.member import Member, OfferedProtocol
from ottla.wire.messages.classic_membership import JoinGroupRequest

# From this version on a new dynamic member first gets its id and must join again with it, so
# that clients whose answer was lost leave no unknown members behind.
_MEMBER_ID_REQUIRED_FROM = 4
# Ids that a group has handed out at a time. A client that joins comes again within moments; one
# that never does would leave an id for each request, for as long as the session that it asks for.
_PENDING_MAX = 1_000
# What of a client id stands in a member id.
_CLIENT_ID_CHARACTERS_MAX = 249


def check_session_timeout(turn: Turn, request: JoinGroupRequest) -> ErrorCode:
    """Whether the broker's settings allow the session timeout asked for."""
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
    """A caller without a member id: a new member, or a static one that has restarted."""
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
    """A caller with a member id gets the present generation again, or starts a new one."""
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
    # A new member cannot send heartbeats while it waits; a client that has gone must not stay.
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
    """Join the member with its present protocols; answer an earlier join that still waits."""
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
