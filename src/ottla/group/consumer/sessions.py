"""The deadlines of a group's members: for heartbeats, revocations, joins and syncs."""

from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.turn import Turn
from ottla.group.records.consumer import Current, MemberState
from ottla.group.values.settings import Pace
from ottla.group.values.timers import Due, TimerKey

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
    """Restart a classic member's session, which is as long as it asked for."""
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
    """Time the SyncGroup of a classic member that has joined."""
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
