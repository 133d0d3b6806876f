"""Offsets of topics that no member reads any more expire (KIP-211)."""

from collections.abc import Callable

from ottla.base.ids import TopicPartition
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup, Group, GroupState
from ottla.group.model.pending_offsets import PendingOffsets
from ottla.group.model.turn import Turn
from ottla.group.offsets.deletion import write_tombstones
from ottla.group.records.stored import CommittedOffset, OffsetRecord


def expire(turn: Turn, group: AnyGroup, pending: PendingOffsets) -> None:
    """Write tombstones for expired offsets; and for the group, if it is empty then.

    Offsets of open transactions stay.
    """
    expired = [
        topic_partition
        for topic_partition in expired_offsets(
            group, turn.timestamp_ms, turn.settings.offsets_retention_ms
        )
        if not pending.is_pending(group.group_id, topic_partition)
    ]
    for topic_partition in expired:
        turn.write(OffsetRecord(group.group_id, topic_partition, None))
    if (
        len(expired) == len(group.offsets)
        and group.is_empty
        and not (isinstance(group, Group) and group.pending_joins)
        and not any(pending.of_group(group.group_id))
    ):
        write_tombstones(turn, group)


def expired_offsets(group: AnyGroup, timestamp_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Which offsets have outlived the retention.

    It counts from when the group became empty; for a group that never had members from the commit.
    In a group with members only offsets of topics that none reads expire, from their commit.
    A commit with a retention of its own keeps that.
    """
    basis = _basis(group)
    if basis is None:
        return []
    return [
        topic_partition
        for topic_partition, committed in group.offsets.items()
        if not _is_read(group, topic_partition.topic)
        and (
            timestamp_ms >= committed.expire_timestamp_ms
            if committed.expire_timestamp_ms is not None
            else timestamp_ms - basis(committed) >= retention_ms
        )
    ]


def _basis(group: AnyGroup) -> Callable[[CommittedOffset], int] | None:
    """From when the retention of an offset counts; None where nothing may expire."""
    if isinstance(group, ConsumerGroup) or group.protocol_type is None:
        return _commit_time
    if group.state is GroupState.EMPTY:
        since = group.state_timestamp_ms
        return _commit_time if since is None else lambda _: since
    if (
        group.state is GroupState.STABLE
        and group.uses_consumer_protocol
        and group.subscribed is not None
    ):
        return _commit_time
    return None


def _commit_time(committed: CommittedOffset) -> int:
    return committed.commit_timestamp_ms


def _is_read(group: AnyGroup, topic: str) -> bool:
    if isinstance(group, ConsumerGroup):
        return group.is_subscribed_to(topic)
    return group.state is GroupState.STABLE and group.is_subscribed_to(topic)
