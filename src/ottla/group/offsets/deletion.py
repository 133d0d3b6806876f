"""DeleteGroups and OffsetDelete, and the offsets of topics that are gone."""

from collections.abc import Callable

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup
from ottla.group.model.pending_offsets import PendingOffsets
from ottla.group.model.turn import Turn
from ottla.group.records.consumer import EpochRecord, TargetEpochRecord
from ottla.group.records.stored import GroupRecord, OffsetRecord
from ottla.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

# Says whether there is such a partition.
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
                    OffsetDeleteResponsePartition(
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


def forget_topic_partitions(turn: Turn, group: AnyGroup, gone: Exists) -> None:
    """Write tombstones for the offsets of partitions that are gone."""
    for topic_partition in group.offsets:
        if gone(topic_partition.topic, topic_partition.partition):
            turn.write(OffsetRecord(group.group_id, topic_partition, None))
