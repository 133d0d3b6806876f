"""Removes members that miss a deadline; starts the sessions that a new coordinator finds."""

from ottla.group.consumer.causes import note_late
from ottla.group.consumer.membership import remove
from ottla.group.consumer.sessions import keep_classic_alive, set_timers
from ottla.group.model.consumer_group import NEW, ConsumerGroup
from ottla.group.model.turn import Turn
from ottla.group.records.consumer import MemberMetadata
from ottla.group.values.settings import Pace
from ottla.group.values.timers import Due, TimerKey

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
