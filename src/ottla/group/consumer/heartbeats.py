"""ConsumerGroupHeartbeat: join, get an assignment, revoke, leave (KIP-848).

The group's epoch rises with its members and their topics; the target assignment follows it; each
member is led to its part of the target one heartbeat at a time. A member that keeps its
partitions continues to read them.
"""

from collections.abc import Collection
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.consumer.causes import note_away, note_left, note_step
from ottla.group.consumer.membership import (
    cancel_timers,
    describe_as,
    keep_alive,
    remove,
    replace_static,
    require_known,
    require_room,
    set_timers,
)
from ottla.group.consumer.targets import follow_topics, reconcile, require_pattern
from ottla.group.model.consumer_group import AWAY, NEW, ConsumerGroup
from ottla.group.model.turn import Call, Turn, change
from ottla.group.records.consumer import Current, CurrentRecord, MemberMetadata, MemberState
from ottla.group.values.settings import GroupSettings, Pace
from ottla.group.values.topics import (
    NOTHING,
    AssignedSlot,
    Share,
    Sight,
    sees_all,
    share_of,
    topics_of,
)
from ottla.wire.messages.consumer_groups import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN = 0
LEAVE = -1

# From this version on members make their own ids (KIP-1082).
_OWN_MEMBER_ID_FROM = 1


def require_valid(
    request: ConsumerGroupHeartbeatRequest, version: int, settings: GroupSettings
) -> None:
    """Check the fields of a request.

    Raises OttlaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION.
    """
    epoch = request.member_epoch
    _forbid(is_blank(request.group_id), "GroupId can't be empty.")
    _forbid(is_blank(request.instance_id), "InstanceId can't be empty.")
    _forbid(is_blank(request.rack_id), "RackId can't be empty.")
    if version >= _OWN_MEMBER_ID_FROM or epoch != JOIN:
        _forbid(is_blank(request.member_id), "MemberId can't be empty.")
    if epoch == JOIN:
        _require_complete(request)
    elif epoch == AWAY:
        _forbid(request.instance_id is None, "InstanceId can't be null.")
    else:
        _forbid(epoch < AWAY, f"MemberEpoch {epoch} is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in settings.consumer_assignors:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. "
            f"Supported assignors: {', '.join(settings.consumer_assignors)}.",
        )
    if request.subscribed_topic_regex:
        require_pattern(request.subscribed_topic_regex)


def is_blank(text: str | None) -> bool:
    """Whether a text was sent and is blank."""
    return text is not None and not text.strip()


def is_complete(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request has all fields; if so, the answer has all fields, too."""
    return (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (request.subscribed_topic_names is not None or bool(request.subscribed_topic_regex))
    )


def _require_complete(request: ConsumerGroupHeartbeatRequest) -> None:
    _forbid(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided.")
    _forbid(
        request.topic_partitions is None or len(request.topic_partitions) > 0,
        "TopicPartitions must be empty when (re-)joining.",
    )
    _forbid(
        request.subscribed_topic_names is None and request.subscribed_topic_regex is None,
        "SubscribedTopicNames or SubscribedTopicRegex must be set when (re-)joining.",
    )


def _forbid(condition: bool, words: str) -> None:
    if condition:
        raise OttlaError(ErrorCode.INVALID_REQUEST, words)


# A member that waits for partitions sends heartbeats this many times as often.
_SOONER = 5


def heartbeat(
    turn: Turn,
    group: ConsumerGroup,
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
    pace: Pace,
    sight: Sight = sees_all,
) -> ConsumerGroupHeartbeatResponse:
    """Update a member from its heartbeat, and answer with its assignment.

    `sight` says which topics the client's pattern may find.

    Raises OttlaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED.
    """
    member_id = request.member_id or call.nonce
    if request.member_epoch in (LEAVE, AWAY):
        return _leave(turn, group, request, pace)
    owned = None if request.topic_partitions is None else share_of(request.topic_partitions)
    if request.member_epoch == JOIN:
        _let_in(turn, group, member_id, request.instance_id)
    else:
        _require_member(group, request, owned)
    is_changed = _update(turn, group, member_id, call, request)
    if group.members[member_id].topic_regex and group.sights.get(member_id) != sight:
        group.sights[member_id] = sight
        group.seen_topics = None
    follow_topics(turn, group, is_changed=is_changed)
    before = group.current.get(member_id, NEW)
    start = before
    if request.member_epoch == JOIN:
        # It joins anew: its former assignment ended with its process.
        had = before.assigned | before.revoking
        given = {slot: before.given_in(slot) for slot in had}
        start = Current(JOIN, JOIN, MemberState.STABLE, had, NOTHING, given)
    after = reconcile(
        start,
        group.target_epoch,
        group.target_of(member_id),
        lambda slot: group.is_taken(slot, member_id),
        owned,
    )
    if after != before:
        change(turn, group, CurrentRecord(group.group_id, member_id, after))
        note_step(turn, group, member_id, before, after)
    set_timers(turn, group, member_id, before, after, pace)
    sends_assignment = (
        request.member_epoch == JOIN or is_complete(request) or after.assigned != before.assigned
    )
    return ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=_interval_ms(after, pace),
        assignment=_assignment(after.assigned) if sends_assignment else None,
    )


def _interval_ms(current: Current, pace: Pace) -> int:
    """The heartbeat interval, shorter while the member waits for partitions of other members."""
    if current.state is MemberState.UNRELEASED_PARTITIONS:
        return max(1, pace.heartbeat_interval_ms // _SOONER)
    return pace.heartbeat_interval_ms


def _leave(
    turn: Turn, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, pace: Pace
) -> ConsumerGroupHeartbeatResponse:
    member_id = request.member_id
    require_known(group, member_id, request.instance_id)
    if request.member_epoch == LEAVE:
        note_left(turn, group, member_id, "it left")
        remove(turn, group, member_id)
    else:
        # The member will be back: its assignment is kept until its session ends.
        current = group.current.get(member_id, NEW)
        away = replace(
            current,
            epoch=AWAY,
            previous_epoch=current.epoch,
            state=MemberState.STABLE,
            revoking=NOTHING,
        )
        change(turn, group, CurrentRecord(group.group_id, member_id, away))
        cancel_timers(turn, group, member_id)
        keep_alive(turn, group, member_id, pace)
        note_away(turn, group, member_id)
    return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)


def _require_member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, owned: Share | None
) -> None:
    """Refuse a caller that is not a member in its present epoch.

    The previous epoch is accepted if the last answer may have been lost and the member owns only
    partitions that are assigned to it.
    """
    require_known(group, request.member_id, request.instance_id)
    current = group.current.get(request.member_id, NEW)
    epoch = request.member_epoch
    if epoch == current.epoch:
        return
    if epoch == current.previous_epoch and owned is not None and owned <= current.assigned:
        return
    raise OttlaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member is in epoch {epoch}, the coordinator has it in "
        f"{current.epoch}: it must abandon all its partitions and rejoin.",
    )


def _let_in(turn: Turn, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Let a member join; a static member with a new member id gets its old membership back.

    The member that has the instance id must have left temporarily (epoch -2), unless it uses the
    classic protocol, which has no such epoch.
    """
    holder = None if instance_id is None else group.static_members.get(instance_id)
    if holder is not None and holder != member_id:
        is_classic = group.members[holder].classic is not None
        if group.current.get(holder, NEW).epoch != AWAY and not is_classic:
            raise OttlaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join: the "
                f"instance id is owned by member {holder}.",
            )
        replace_static(turn, group, holder, member_id)
    else:
        require_room(turn, group, member_id)


def _update(
    turn: Turn,
    group: ConsumerGroup,
    member_id: str,
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
) -> bool:
    """Update the member from its request; return whether its subscription changed."""
    base = group.members.get(member_id) or MemberMetadata(None, None, "", "", (), None, -1, None)
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    metadata = replace(
        base,
        client_id=call.client_id,
        client_host=call.client_host,
        instance_id=_or(request.instance_id, base.instance_id),
        rack_id=_or(request.rack_id, base.rack_id),
        topic_names=base.topic_names if names is None else tuple(sorted(set(names))),
        topic_regex=base.topic_regex if regex is None else regex or None,
        server_assignor=_or(request.server_assignor, base.server_assignor),
        rebalance_timeout_ms=base.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        classic=None,
    )
    return describe_as(turn, group, member_id, metadata)


def _or(new: str | None, old: str | None) -> str | None:
    return old if new is None else new


def _assignment(share: Collection[AssignedSlot]) -> Assignment:
    return Assignment(topic_partitions=topics_of(share, TopicPartitions))
