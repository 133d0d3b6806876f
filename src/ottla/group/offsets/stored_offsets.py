"""Committed offsets of groups: fetched, deleted and expired (KIP-496, KIP-211)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition, by_topic
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup, Group, GroupState
from ottla.group.model.pending_offsets import PendingOffsets
from ottla.group.model.turn import Turn
from ottla.group.records.consumer import EpochRecord, TargetEpochRecord
from ottla.group.records.stored import CommittedOffset, GroupRecord, OffsetRecord
from ottla.wire.messages.group_offsets import (
    OffsetCommitResponsePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
)

# The offset in answers for a partition without a committed offset.
NO_OFFSET = -1
NO_LEADER_EPOCH = -1


class FetchedOffset(NamedTuple):
    """One partition of an answer."""

    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None
    error_code: ErrorCode


class FetchedTopic(NamedTuple):
    """One topic of an answer."""

    topic: str
    partitions: list[FetchedOffset]


# A topic and the partitions asked for.
WantedTopic = tuple[str, Sequence[int]]


# Whether a committed offset is shown: an offset of a deleted topic is not.
IsShown = Callable[[TopicPartition, CommittedOffset], bool]
# Whether a committed offset is to be forgotten.
IsGone = Callable[[TopicPartition, CommittedOffset], bool]


def all_shown(_name: TopicPartition, _committed: CommittedOffset) -> bool:
    """Show every committed offset."""
    return True


def fetch(
    group: AnyGroup | None, wanted: Sequence[WantedTopic] | None, shown: IsShown = all_shown
) -> list[FetchedTopic]:
    """The committed offsets of the partitions in `wanted`, or all of them if it is None.

    A partition without a committed offset gets offset -1. An unknown group has no offsets.
    """
    offsets = {} if group is None else group.offsets
    if wanted is None:
        names = [name for name, committed in offsets.items() if shown(name, committed)]
        wanted = [(topic, sorted(each)) for topic, each in sorted(by_topic(names).items())]
    answer = []
    for topic, indexes in wanted:
        fetched = []
        for index in indexes:
            name = TopicPartition(topic, index)
            committed = offsets.get(name)
            if committed is None or not shown(name, committed):
                fetched.append(nothing_committed(index, ErrorCode.NONE))
            else:
                fetched.append(
                    FetchedOffset(
                        index,
                        committed.offset,
                        committed.leader_epoch,
                        committed.metadata,
                        ErrorCode.NONE,
                    )
                )
        answer.append(FetchedTopic(topic, fetched))
    return answer


def without_pending(
    fetched: list[FetchedTopic], group_id: str, pending: PendingOffsets
) -> list[FetchedTopic]:
    """Answer UNSTABLE_OFFSET_COMMIT (retriable) for offsets that a transaction may still change."""
    return [
        FetchedTopic(
            topic,
            [
                nothing_committed(each.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if pending.is_pending(group_id, TopicPartition(topic, each.partition))
                else each
                for each in partitions
            ],
        )
        for topic, partitions in fetched
    ]


def nothing_committed(partition: int, code: ErrorCode) -> FetchedOffset:
    """The answer for a partition without an offset, or with an error."""
    return FetchedOffset(partition, NO_OFFSET, NO_LEADER_EPOCH, "", code)


# Whether a topic has a partition of that index.
Exists = Callable[[str, int], bool]


def delete_group(turn: Turn, group: AnyGroup | None, pending: PendingOffsets) -> ErrorCode:
    """Forget an empty group and its offsets, those of open transactions included."""
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not group.is_empty:
        return ErrorCode.NON_EMPTY_GROUP
    for topic_partition in {**group.offsets, **dict.fromkeys(pending.of_group(group.group_id))}:
        turn.write(OffsetRecord(group.group_id, topic_partition, None))
    write_tombstones(turn, group)
    return ErrorCode.NONE


def write_tombstones(turn: Turn, group: AnyGroup) -> None:
    """Delete an empty group; its committed offsets stay."""
    if isinstance(group, ConsumerGroup):
        turn.write(TargetEpochRecord(group.group_id, None))
        turn.write(EpochRecord(group.group_id, None))
    else:
        turn.write(GroupRecord(group.group_id, None))


def delete_offsets(
    turn: Turn, group: AnyGroup | None, request: OffsetDeleteRequest, exists: Exists
) -> OffsetDeleteResponse:
    """Forget offsets of topics that no member reads (KIP-496)."""
    if group is None:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty and not group.uses_consumer_protocol:
        # The members' subscriptions cannot be known.
        return OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP)
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=_delete_offset(
                            turn, group, TopicPartition(topic.name, each.partition_index), exists
                        ),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete_offset(
    turn: Turn, group: AnyGroup, topic_partition: TopicPartition, exists: Exists
) -> ErrorCode:
    if not exists(topic_partition.topic, topic_partition.partition):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not group.is_empty and group.is_subscribed_to(topic_partition.topic):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    if topic_partition in group.offsets:
        turn.write(OffsetRecord(group.group_id, topic_partition, None))
    return ErrorCode.NONE


def forget_topic_partitions(turn: Turn, group: AnyGroup, gone: IsGone) -> None:
    """Write tombstones for the offsets of partitions that are gone."""
    for topic_partition, committed in group.offsets.items():
        if gone(topic_partition, committed):
            turn.write(OffsetRecord(group.group_id, topic_partition, None))


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
    """Return the partitions whose committed offsets have expired.

    The retention of an empty classic group's offsets starts when the group became empty. It starts
    at the commit for groups of the consumer protocol and groups that never had members. While a
    group has members, only offsets of topics that no member reads expire, also counted from the
    commit. A commit with an expiry of its own keeps that.
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
    """Return a function for the start of an offset's retention; None if none may expire."""
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
