"""Membership of a consumer group: members join, are looked up, and are removed.

A member has deadlines for heartbeats, revocations, joins and syncs; one that misses a deadline is
removed.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.consumer.causes import (
    note_changed,
    note_empty,
    note_joined,
    note_late,
    note_left,
    note_returned,
)
from ottla.group.model.consumer_group import NEW, ConsumerGroup
from ottla.group.model.turn import Turn, change
from ottla.group.records.consumer import (
    ConsumerGroupRecord,
    Current,
    CurrentRecord,
    EpochRecord,
    MemberMetadata,
    MemberRecord,
    MemberState,
    TargetRecord,
)
from ottla.group.values.settings import Pace
from ottla.group.values.timers import Due, TimerKey
from ottla.wire.messages.classic_membership import MemberIdentity, MemberResponse

_OF_A_MEMBER = (Due.SESSION, Due.REVOKE, Due.JOIN, Due.SYNC)


def keep_alive(turn: Turn, group: ConsumerGroup, member_id: str, pace: Pace) -> None:
    """Restart the session of a member after a heartbeat."""
    key = TimerKey(Due.SESSION, group.group_id, member_id)
    turn.timers.set(key, turn.now_ms + pace.session_timeout_ms)
    group.pace = pace


def set_timers(
    turn: Turn,
    group: ConsumerGroup,
    member_id: str,
    before: Current,
    after: Current,
    pace: Pace,
) -> None:
    """Restart the member's session, and time its revocations, if `after` has any."""
    keep_alive(turn, group, member_id, pace)
    key = TimerKey(Due.REVOKE, group.group_id, member_id)
    if after.state is not MemberState.UNREVOKED_PARTITIONS:
        turn.timers.cancel(key)
    elif before.state is not after.state or before.epoch != after.epoch or key not in turn.timers:
        timeout_ms = group.members[member_id].rebalance_timeout_ms
        turn.timers.set(key, turn.now_ms + timeout_ms)


def keep_classic_alive(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Restart a classic member's session, with the session timeout that the member requested."""
    classic = group.members[member_id].classic
    assert classic is not None
    key = TimerKey(Due.SESSION, group.group_id, member_id)
    turn.timers.set(key, turn.now_ms + classic.session_timeout_ms)


def await_join(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Give a classic member that must join again its rebalance timeout."""
    key = TimerKey(Due.JOIN, group.group_id, member_id)
    if key not in turn.timers:
        turn.timers.set(key, turn.now_ms + group.members[member_id].rebalance_timeout_ms)


def await_sync(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Start the timeout within which a classic member that has joined must send SyncGroup."""
    turn.timers.cancel(TimerKey(Due.JOIN, group.group_id, member_id))
    key = TimerKey(Due.SYNC, group.group_id, member_id)
    turn.timers.set(key, turn.now_ms + group.members[member_id].rebalance_timeout_ms)


def end_sync(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """End the wait for a member's SyncGroup."""
    turn.timers.cancel(TimerKey(Due.SYNC, group.group_id, member_id))


def cancel_timers(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Cancel all deadlines of a member."""
    for due in _OF_A_MEMBER:
        turn.timers.cancel(TimerKey(due, group.group_id, member_id))


_LATE = {
    Due.REVOKE: "it did not revoke its partitions within {} ms",
    Due.JOIN: "it did not join again within {} ms",
    Due.SYNC: "it did not ask for its assignment within {} ms",
}


def start(turn: Turn, group: ConsumerGroup) -> None:
    """Start the members' sessions, as a new coordinator has loaded the group."""
    settings = turn.settings
    pace = Pace(settings.consumer_session_timeout_ms, settings.consumer_heartbeat_interval_ms)
    for member_id, metadata in group.members.items():
        if metadata.classic is not None:
            keep_classic_alive(turn, group, member_id)
            continue
        current = group.current.get(member_id, NEW)
        set_timers(turn, group, member_id, current, current, pace)


def on_deadline(turn: Turn, group: ConsumerGroup, key: TimerKey) -> None:
    """Remove a member without a heartbeat, or whose revocation, join or sync is late."""
    metadata = group.members.get(key.member_id)
    if metadata is None:
        return
    words, setting = _lateness(group, metadata, key.due)
    note_late(turn, group, key.member_id, words, setting)
    remove(turn, group, key.member_id)


def _lateness(group: ConsumerGroup, metadata: MemberMetadata, due: Due) -> tuple[str, str]:
    if due is not Due.SESSION:
        timeout_ms = metadata.rebalance_timeout_ms
        return _LATE[due].format(timeout_ms), f"max.poll.interval.ms={timeout_ms}"
    if metadata.classic is not None:
        timeout_ms = metadata.classic.session_timeout_ms
        setting = f"session.timeout.ms={timeout_ms}"
    else:
        assert group.pace is not None, "a session that ends has begun"
        timeout_ms, setting = group.pace.session_timeout_ms, group.pace.session_limit
    return f"it sent no heartbeat for {timeout_ms} ms", setting


def remove(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Remove a member; the others get the new assignment with their next heartbeats."""
    for record in member_tombstones(group, member_id):
        change(turn, group, record)
    change(turn, group, EpochRecord(group.group_id, group.epoch + 1, group.topics_hash))
    group.seen_topics = None
    cancel_timers(turn, group, member_id)
    if not group.members:
        note_empty(turn, group)


def describe_as(turn: Turn, group: ConsumerGroup, member_id: str, metadata: MemberMetadata) -> bool:
    """Write a member's metadata if it changed; return whether the subscription changed.

    As in Kafka, a new member without topics does not raise the group epoch.
    """
    before = group.members.get(member_id)
    if metadata == before:
        return False
    change(turn, group, MemberRecord(group.group_id, member_id, metadata))
    group.seen_topics = None
    if before is None:
        note_joined(turn, group, member_id)
        return bool(metadata.topic_names or metadata.topic_regex)
    if (metadata.topic_names, metadata.topic_regex) == (before.topic_names, before.topic_regex):
        return False
    note_changed(turn, group, member_id)
    return True


def require_room(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Raise OttlaError (GROUP_MAX_SIZE_REACHED) if a new member is one too many."""
    size_max = turn.settings.consumer_max_size
    if member_id not in group.members and len(group.members) >= size_max:
        raise OttlaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def replace_static(turn: Turn, group: ConsumerGroup, old_id: str, new_id: str) -> None:
    """Give a static member's assignment to its new id, without a rebalance."""
    metadata, share = group.members[old_id], group.target_of(old_id)
    current = group.current.get(old_id, NEW)
    for record in member_tombstones(group, old_id):
        change(turn, group, record)
    cancel_timers(turn, group, old_id)
    change(turn, group, MemberRecord(group.group_id, new_id, metadata))
    change(turn, group, TargetRecord(group.group_id, new_id, share))
    change(turn, group, CurrentRecord(group.group_id, new_id, current))
    note_returned(turn, group, new_id)


def require_instance(group: ConsumerGroup, member_id: str, instance_id: str) -> None:
    """Raise OttlaError if another member has the instance id, or if no member has it."""
    holder = group.static_members.get(instance_id)
    if holder is None:
        raise OttlaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} belongs to no member."
        )
    if holder != member_id:
        raise OttlaError(
            ErrorCode.FENCED_INSTANCE_ID, f"Instance id {instance_id} belongs to member {holder}."
        )


def require_known(group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Check that there is such a member. Raises FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID."""
    if instance_id is not None:
        require_instance(group, member_id, instance_id)
    if member_id not in group.members:
        raise OttlaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )


def member_tombstones(group: ConsumerGroup, member_id: str) -> list[ConsumerGroupRecord]:
    """The tombstones of a member."""
    return [
        CurrentRecord(group.group_id, member_id, None),
        TargetRecord(group.group_id, member_id, None),
        MemberRecord(group.group_id, member_id, None),
    ]


def leave(turn: Turn, group: ConsumerGroup, leaving: list[MemberIdentity]) -> list[MemberResponse]:
    """Remove the members; a static one may be named by its instance id alone."""
    return [
        MemberResponse(
            member_id=each.member_id,
            group_instance_id=each.group_instance_id,
            error_code=_leave_one(turn, group, each),
        )
        for each in leaving
    ]


def _leave_one(turn: Turn, group: ConsumerGroup, leaving: MemberIdentity) -> ErrorCode:
    member_id = leaving.member_id
    if leaving.group_instance_id is not None:
        holder = group.static_members.get(leaving.group_instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_id not in ("", holder):
            return ErrorCode.FENCED_INSTANCE_ID
        member_id = holder
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.members[member_id].classic is None:
        words = "an administrator put it out"
    else:
        words = f"it left: {leaving.reason}" if leaving.reason else "it left"
    note_left(turn, group, member_id, words)
    remove(turn, group, member_id)
    return ErrorCode.NONE
