"""ConsumerGroupHeartbeat: joining, learning one's share, giving back, leaving (KIP-848).

The group's epoch rises with its members and their topics; the target assignment follows it; each
member is led to its part of the target one heartbeat at a time. Nobody is stopped who keeps what
it has.
"""

from collections.abc import Collection
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.consumer.assignors import ASSIGNORS, Subscriber
from ottla.group.consumer.causes import (
    note_away,
    note_changed,
    note_empty,
    note_joined,
    note_late,
    note_left,
    note_returned,
    note_step,
    note_target,
    note_topics_changed,
)
from ottla.group.consumer.group import AWAY, ConsumerGroup
from ottla.group.consumer.pace import Pace
from ottla.group.consumer.reconciling import reconcile
from ottla.group.consumer.records import (
    ConsumerGroupRecord,
    Current,
    CurrentRecord,
    EpochRecord,
    MemberMetadata,
    MemberRecord,
    MemberState,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.group.consumer.requests import JOIN, LEAVE, is_complete
from ottla.group.consumer.shares import NOTHING, Share, Slot, by_topic, share_of
from ottla.group.consumer.subscriptions import Subscriptions, resolve
from ottla.group.consumer.topics import Topics, shape_hash
from ottla.group.timers import Due, TimerKey
from ottla.group.turn import Call, Turn
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitionsResponse,
)

_NEW = Current(JOIN, JOIN, MemberState.STABLE, NOTHING, NOTHING)


def heartbeat(
    turn: Turn,
    group: ConsumerGroup,
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
    topics: Topics,
    pace: Pace,
) -> ConsumerGroupHeartbeatResponse:
    """Take in what a member says, and tell it what it may have now.

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
    _follow_topics(turn, group, topics, is_changed=is_changed)
    before = group.current.get(member_id, _NEW)
    start = before
    if request.member_epoch == JOIN:
        # Whatever it had is gone with its process.
        start = Current(JOIN, JOIN, MemberState.STABLE, before.assigned | before.revoking, NOTHING)
    after = reconcile(
        start,
        group.target_epoch,
        group.target_of(member_id),
        lambda slot: group.is_taken(slot, member_id),
        owned,
    )
    if after != before:
        _change(turn, group, CurrentRecord(group.group_id, member_id, after))
        note_step(turn, group, member_id, before, after)
    _set_timers(turn, group, member_id, before, after, pace)
    is_told = (
        request.member_epoch == JOIN or is_complete(request) or after.assigned != before.assigned
    )
    return ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=pace.heartbeat_interval_ms,
        assignment=_assignment(after.assigned) if is_told else None,
    )


def start(turn: Turn, group: ConsumerGroup) -> None:
    """A coordinator took the group up: sessions of its members start now."""
    settings = turn.settings
    pace = Pace(settings.consumer_session_timeout_ms, settings.consumer_heartbeat_interval_ms)
    for member_id in group.members:
        current = group.current.get(member_id, _NEW)
        _set_timers(turn, group, member_id, current, current, pace)


def on_deadline(turn: Turn, group: ConsumerGroup, key: TimerKey) -> None:
    """A member was silent for too long, or did not give back what it must in time: it is out."""
    metadata = group.members.get(key.member_id)
    if metadata is None:
        return
    if key.due is Due.REVOKE:
        words = "it did not give back in time what it shall not have any more"
        setting = f"max.poll.interval.ms={metadata.rebalance_timeout_ms}"
    else:
        assert group.pace is not None, "a session that ends has begun"
        words = f"nothing was heard of it for {group.pace.session_timeout_ms} ms"
        setting = group.pace.session_limit
    note_late(turn, group, key.member_id, words, setting)
    remove(turn, group, key.member_id)


def keep_alive(turn: Turn, group: ConsumerGroup, member_id: str, pace: Pace) -> None:
    """The member was heard of: its session starts anew."""
    key = TimerKey(Due.SESSION, group.group_id, member_id)
    turn.timers.set(key, turn.now_ms + pace.session_timeout_ms)
    group.pace = pace


def remove(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Take a member out; the others learn of it with their next heartbeats."""
    for record in _tombstones(group, member_id):
        _change(turn, group, record)
    _change(turn, group, EpochRecord(group.group_id, group.epoch + 1, group.topics_hash))
    group.seen_topics = None
    _cancel_timers(turn, group, member_id)
    if not group.members:
        note_empty(turn, group)


def _leave(
    turn: Turn, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, pace: Pace
) -> ConsumerGroupHeartbeatResponse:
    member_id = request.member_id
    _require_known(group, member_id, request.instance_id)
    if request.member_epoch == LEAVE:
        note_left(turn, group, member_id, "it left")
        remove(turn, group, member_id)
    else:
        # It will be back: what it has is kept for it until its session ends.
        current = group.current.get(member_id, _NEW)
        away = replace(
            current,
            epoch=AWAY,
            previous_epoch=current.epoch,
            state=MemberState.STABLE,
            revoking=NOTHING,
        )
        _change(turn, group, CurrentRecord(group.group_id, member_id, away))
        _cancel_timers(turn, group, member_id)
        keep_alive(turn, group, member_id, pace)
        note_away(turn, group, member_id)
    return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)


def _let_in(turn: Turn, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """A member comes, or comes again; a static one may take its own old place."""
    holder = None if instance_id is None else group.static_members.get(instance_id)
    if holder is not None and holder != member_id:
        if group.current.get(holder, _NEW).epoch != AWAY:
            raise OttlaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join: the "
                f"instance id is owned by member {holder}.",
            )
        _replace(turn, group, holder, member_id)
    elif member_id not in group.members and len(group.members) >= turn.settings.consumer_max_size:
        raise OttlaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of "
            f"{turn.settings.consumer_max_size} members.",
        )


def _replace(turn: Turn, group: ConsumerGroup, old_id: str, new_id: str) -> None:
    """A static member is back under a new id: it has what it had, and the group need not know."""
    metadata, share = group.members[old_id], group.target_of(old_id)
    current = group.current.get(old_id, _NEW)
    for record in _tombstones(group, old_id):
        _change(turn, group, record)
    _cancel_timers(turn, group, old_id)
    _change(turn, group, MemberRecord(group.group_id, new_id, metadata))
    _change(turn, group, TargetRecord(group.group_id, new_id, share))
    _change(turn, group, CurrentRecord(group.group_id, new_id, current))
    note_returned(turn, group, new_id)


def _require_member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, owned: Share | None
) -> None:
    """Who reports must be a member, in its present epoch.

    One epoch behind is good enough where the last answer may have been lost: it has nothing then
    that it must not have.
    """
    _require_known(group, request.member_id, request.instance_id)
    current = group.current.get(request.member_id, _NEW)
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


def _require_known(group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    if instance_id is not None:
        holder = group.static_members.get(instance_id)
        if holder is not None and holder != member_id:
            raise OttlaError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Instance id {instance_id} belongs to member {holder} now.",
            )
    if member_id not in group.members:
        raise OttlaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )


def _update(
    turn: Turn,
    group: ConsumerGroup,
    member_id: str,
    call: Call,
    request: ConsumerGroupHeartbeatRequest,
) -> bool:
    """Take in what the member says of itself; whether it reads other topics than before."""
    before = group.members.get(member_id)
    base = before or MemberMetadata(None, None, "", "", (), None, -1, None)
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    after = replace(
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
    )
    if after == before:
        return False
    _change(turn, group, MemberRecord(group.group_id, member_id, after))
    group.seen_topics = None
    if before is None:
        note_joined(turn, group, member_id)
        return True
    if (after.topic_names, after.topic_regex) == (before.topic_names, before.topic_regex):
        return False
    note_changed(turn, group, member_id)
    return True


def _or(new: str | None, old: str | None) -> str | None:
    return old if new is None else new


def _follow_topics(turn: Turn, group: ConsumerGroup, topics: Topics, *, is_changed: bool) -> None:
    """Raise the epoch where members or topics have changed, and have the target follow it."""
    if group.seen_topics is topics.token and not is_changed and group.epoch == group.target_epoch:
        return
    subscriptions = resolve(group, topics)
    group.subscribed = subscriptions.names
    group.seen_topics = topics.token
    topics_hash = shape_hash(subscriptions.shapes.values())
    if is_changed or topics_hash != group.topics_hash:
        if not is_changed:
            note_topics_changed(turn, group)
        _change(turn, group, EpochRecord(group.group_id, group.epoch + 1, topics_hash))
    if group.epoch > group.target_epoch:
        _assign(turn, group, subscriptions)


def _assign(turn: Turn, group: ConsumerGroup, subscriptions: Subscriptions) -> None:
    assign = ASSIGNORS[preferred_assignor(group, turn.settings.consumer_assignors)]
    target = assign(
        {
            member_id: Subscriber(
                subscriptions.by_member[member_id],
                metadata.instance_id,
                group.target_of(member_id),
            )
            for member_id, metadata in group.members.items()
        },
        {topic_id: shape.partitions for topic_id, shape in subscriptions.shapes.items()},
    )
    for member_id, share in sorted(target.items()):
        if group.target.get(member_id) != share:
            _change(turn, group, TargetRecord(group.group_id, member_id, share))
    record = TargetEpochRecord(group.group_id, group.epoch, turn.timestamp_ms)
    _change(turn, group, record)
    note_target(turn, group)


def preferred_assignor(group: ConsumerGroup, offered: Collection[str]) -> str:
    """The one most members ask for; the broker's first where nobody asks."""
    votes: dict[str, int] = {}
    for metadata in group.members.values():
        if metadata.server_assignor in offered:
            name = str(metadata.server_assignor)
            votes[name] = votes.get(name, 0) + 1
    order = list(offered)
    return max(order, key=lambda name: (votes.get(name, 0), -order.index(name)))


def _set_timers(
    turn: Turn,
    group: ConsumerGroup,
    member_id: str,
    before: Current,
    after: Current,
    pace: Pace,
) -> None:
    keep_alive(turn, group, member_id, pace)
    key = TimerKey(Due.REVOKE, group.group_id, member_id)
    if after.state is not MemberState.UNREVOKED_PARTITIONS:
        turn.timers.cancel(key)
    elif before.state is not after.state or before.epoch != after.epoch or key not in turn.timers:
        timeout_ms = group.members[member_id].rebalance_timeout_ms
        turn.timers.set(key, turn.now_ms + timeout_ms)


def _cancel_timers(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    for due in (Due.SESSION, Due.REVOKE):
        turn.timers.cancel(TimerKey(due, group.group_id, member_id))


def _tombstones(group: ConsumerGroup, member_id: str) -> list[ConsumerGroupRecord]:
    return [
        CurrentRecord(group.group_id, member_id, None),
        TargetRecord(group.group_id, member_id, None),
        MemberRecord(group.group_id, member_id, None),
    ]


def _change(turn: Turn, group: ConsumerGroup, record: ConsumerGroupRecord) -> None:
    """Write, and go on as if it were written: a decision of many steps sees its own."""
    group.apply(record)
    turn.write(record)


def _assignment(share: Collection[Slot]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitionsResponse(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in by_topic(share).items()
        ]
    )
