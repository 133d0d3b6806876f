"""OffsetCommit: stores the offsets at which a group resumes."""

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID, TopicPartition
from ottla.group.classic.rebalance import keep_alive
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup, GroupState
from ottla.group.model.turn import Turn
from ottla.group.records.consumer import Current
from ottla.group.records.stored import CommittedOffset, OffsetRecord
from ottla.group.values.topics import AssignedSlot
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)


def validate_member_epoch(group: ConsumerGroup, member_id: str, epoch: int) -> ErrorCode:
    """Refuse a member that is not in its present epoch, as it may have lost the partition."""
    if member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    current = group.current.get(member_id)
    if current is None or current.epoch != epoch:
        if group.members[member_id].classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def validate_commit_epoch(
    group: ConsumerGroup, member_id: str, epoch: int, slots: Iterable[AssignedSlot]
) -> ErrorCode:
    """Like `validate_member_epoch`, but accept an earlier epoch for partitions kept since then.

    A commit that was in flight when the epoch rose need not be retried (KIP-1251). The whole commit
    is refused if one of `slots` was assigned to the member later, or is not assigned to it.
    """
    code = validate_member_epoch(group, member_id, epoch)
    current = group.current.get(member_id)
    if code in _EARLIER and current is not None and 0 < epoch < current.epoch:
        return ErrorCode.NONE if all(_is_kept(current, slot, epoch) for slot in slots) else code
    return code


_EARLIER = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION)


def _is_kept(current: Current, slot: AssignedSlot, epoch: int) -> bool:
    is_held = slot in current.assigned or slot in current.revoking
    return is_held and current.given_in(slot) <= epoch


# From this version on the answer may be GROUP_ID_NOT_FOUND (KIP-848).
_GROUP_NOT_FOUND_FROM = 9
# From this version on a commit names a member epoch, and its answer can say STALE_MEMBER_EPOCH.
_MEMBER_EPOCH_FROM = 9
_NO_EPOCH = -1

# Whether a topic has a partition of that index.
Exists = Callable[[str, int], bool]
# The error of a partition index of a requested topic; NONE if the partition exists.
PartitionCheck = Callable[[OffsetCommitRequestTopic, int], ErrorCode]


def validate_commit(
    turn: Turn, group: AnyGroup | None, request: OffsetCommitRequest, version: int
) -> ErrorCode:
    """Whether the caller may commit for the group.

    An old generation, or a removed member, is refused: that keeps a zombie from moving offsets
    back. Generation -1 without a member is a client that only stores offsets, which
    is allowed while the group has no members. A commit of a member renews its session.
    """
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return ErrorCode.NONE
        if version >= _GROUP_NOT_FOUND_FROM:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    if generation < 0 and group.is_empty:
        return ErrorCode.NONE
    if isinstance(group, ConsumerGroup):
        return _validate_consumer_commit(turn, group, request, version)
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    code = group.validate_member(request.member_id, request.group_instance_id)
    if code is not ErrorCode.NONE:
        return code
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    keep_alive(turn, group, group.members[request.member_id])
    return ErrorCode.NONE


def _validate_consumer_commit(
    turn: Turn, group: ConsumerGroup, request: OffsetCommitRequest, version: int
) -> ErrorCode:
    """Check a member's commit; a consumer protocol member must use a version with epochs."""
    metadata = group.members.get(request.member_id)
    if version < _MEMBER_EPOCH_FROM and metadata is not None and metadata.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    return validate_commit_epoch(
        group,
        request.member_id,
        request.generation_id_or_member_epoch,
        _slots(turn, request.topics),
    )


def _slots(
    turn: Turn, topics: Iterable[OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic]
) -> Iterator[AssignedSlot]:
    """The partitions of a request that exist, by the ids of their topics."""
    for topic in topics:
        shape = turn.topics.find(topic.name)
        for partition in topic.partitions:
            if shape is not None and partition.partition_index in range(shape.partitions):
                yield AssignedSlot(shape.id, partition.partition_index)


def commit(
    turn: Turn,
    group: AnyGroup | None,
    request: OffsetCommitRequest,
    version: int,
    check: PartitionCheck,
) -> OffsetCommitResponse:
    """Write the offsets of existing partitions; answer other partitions with their errors."""
    code = validate_commit(turn, group, request, version)
    if code is not ErrorCode.NONE:
        return commit_refused(request, code, check)
    expire_timestamp_ms = (
        turn.timestamp_ms + request.retention_time_ms if request.retention_time_ms >= 0 else None
    )
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            code = check(topic, partition.partition_index)
            if code is ErrorCode.NONE:
                code = _commit_one(
                    turn,
                    request.group_id,
                    TopicPartition(topic.name, partition.partition_index),
                    partition,
                    expire_timestamp_ms,
                    topic.topic_id or NO_TOPIC_ID,
                )
            partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
        topics.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return OffsetCommitResponse(topics=topics)


def commit_refused(
    request: OffsetCommitRequest, code: ErrorCode, check: PartitionCheck | None = None
) -> OffsetCommitResponse:
    """Answer every partition with the same error: the response has no error of its own.

    As in Kafka, a partition that does not exist gets the error from `check` instead.
    """
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=(check and check(topic, partition.partition_index)) or code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def validate_commit_in_transaction(
    turn: Turn, group: AnyGroup | None, request: TxnOffsetCommitRequest
) -> ErrorCode:
    """Whether a producer may commit for the group (KIP-447).

    A producer that names no member, as all did before version 3, is accepted: its epoch fences
    it. In a group of the consumer protocol only epoch -1 means that no epoch is given.
    """
    is_member = bool(request.member_id) or request.group_instance_id is not None
    if group is None:
        return ErrorCode.NONE if request.generation_id < 0 else ErrorCode.ILLEGAL_GENERATION
    if request.generation_id < 0 and group.is_empty:
        return ErrorCode.NONE
    names_epoch = request.generation_id >= 0 or (
        isinstance(group, ConsumerGroup) and request.generation_id != _NO_EPOCH
    )
    if not is_member and not names_epoch:
        return ErrorCode.NONE
    if isinstance(group, ConsumerGroup):
        slots = _slots(turn, request.topics)
        code = validate_commit_epoch(group, request.member_id, request.generation_id, slots)
        # No version of this request has STALE_MEMBER_EPOCH.
        return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code
    code = group.validate_member(request.member_id, request.group_instance_id)
    if code is ErrorCode.NONE and request.generation_id != group.generation:
        code = ErrorCode.ILLEGAL_GENERATION
    return code


def commit_in_transaction(
    turn: Turn, group: AnyGroup | None, request: TxnOffsetCommitRequest, exists: Exists
) -> TxnOffsetCommitResponse:
    """Write the offsets of existing partitions; they take effect when the transaction commits."""
    code = validate_commit_in_transaction(turn, group, request)
    if code is not ErrorCode.NONE:
        return transactional_commit_refused(request, code, exists)

    def one(topic: str, partition: TxnOffsetCommitRequestPartition) -> ErrorCode:
        index = partition.partition_index
        if not exists(topic, index):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _commit_one(
            turn, request.group_id, TopicPartition(topic, index), partition, None, NO_TOPIC_ID
        )

    return _transactional_response(request, one)


def transactional_commit_refused(
    request: TxnOffsetCommitRequest, code: ErrorCode, exists: Exists | None = None
) -> TxnOffsetCommitResponse:
    """The same error for every partition; with `exists`, for every partition that exists."""

    def one(topic: str, partition: TxnOffsetCommitRequestPartition) -> ErrorCode:
        if exists is None or exists(topic, partition.partition_index):
            return code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return _transactional_response(request, one)


def _transactional_response(
    request: TxnOffsetCommitRequest,
    code_of: Callable[[str, TxnOffsetCommitRequestPartition], ErrorCode],
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code_of(topic.name, each)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _commit_one(
    turn: Turn,
    group_id: str,
    topic_partition: TopicPartition,
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    expire_timestamp_ms: int | None,
    topic_id: UUID,
) -> ErrorCode:
    metadata = partition.committed_metadata or ""
    if len(metadata) > turn.settings.offset_metadata_max:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    turn.write(
        OffsetRecord(
            group_id,
            topic_partition,
            CommittedOffset(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp_ms=turn.timestamp_ms,
                expire_timestamp_ms=expire_timestamp_ms,
                topic_id=topic_id,
            ),
        )
    )
    return ErrorCode.NONE
