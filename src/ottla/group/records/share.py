"""The records of share groups, as values and as Kafka's bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ottla.group.records.written import GroupEpoch, TargetEpoch, TargetShare
from ottla.group.values.shares import Share, share_of, topics_of
from ottla.wire.stored import decode_versioned, encode_versioned
from ottla.wire.stored_share_groups import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)

_MEMBER, _GROUP, _TARGET, _TARGET_SHARE, _CURRENT, _STATE = 10, 11, 12, 13, 14, 15
_VALUE_VERSION = 0
# A member of a share group always has its target assignment.
_STABLE = 0


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata:
    """A member's identity and subscription."""

    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShareCurrent:
    """A member's assignment in its epoch."""

    epoch: int
    previous_epoch: int
    assigned: Share


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic, and those of its partitions that have share state for the group."""

    id: UUID
    name: str
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class ShareMemberRecord:
    """A member, or the tombstone."""

    group_id: str
    member_id: str
    metadata: ShareMemberMetadata | None

    @property
    def is_tombstone(self) -> bool:
        return self.metadata is None


class ShareEpochRecord(GroupEpoch):
    """A group's epoch and its hash of the subscribed topics; or the tombstone."""

    __slots__ = ()


class ShareTargetEpochRecord(TargetEpoch):
    """The group epoch of the target assignment, or the tombstone."""

    __slots__ = ()


class ShareTargetRecord(TargetShare):
    """A member's part of the target assignment, or the tombstone."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ShareCurrentRecord:
    """A member's current assignment, or the tombstone."""

    group_id: str
    member_id: str
    current: ShareCurrent | None

    @property
    def is_tombstone(self) -> bool:
        return self.current is None


@dataclass(frozen=True, slots=True)
class ShareStateRecord:
    """The topics with initialized state and those whose state is being deleted, or the tombstone.

    `begun` is None in a tombstone.
    """

    group_id: str
    begun: tuple[TopicState, ...] | None
    deleting: tuple[TopicState, ...] = ()

    @property
    def is_tombstone(self) -> bool:
        return self.begun is None


ShareGroupRecord = (
    ShareMemberRecord
    | ShareEpochRecord
    | ShareTargetEpochRecord
    | ShareTargetRecord
    | ShareCurrentRecord
    | ShareStateRecord
)


def encode(record: ShareGroupRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value; a tombstone's value is None."""
    key: Any
    value: Any
    match record:
        case ShareMemberRecord(group_id, member_id, metadata):
            kind, key = _MEMBER, ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            value = metadata is not None and ShareGroupMemberMetadataValue(
                rack_id=metadata.rack_id,
                client_id=metadata.client_id,
                client_host=metadata.client_host,
                subscribed_topic_names=list(metadata.topic_names),
            )
        case ShareEpochRecord(group_id, epoch, topics_hash):
            kind, key = _GROUP, ShareGroupMetadataKey(group_id=group_id)
            value = epoch is not None and ShareGroupMetadataValue(
                epoch=epoch, metadata_hash=topics_hash
            )
        case ShareTargetEpochRecord(group_id, epoch, timestamp_ms):
            kind, key = _TARGET, ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
            value = epoch is not None and ShareGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp_ms
            )
        case ShareTargetRecord(group_id, member_id, share):
            kind = _TARGET_SHARE
            key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            value = share is not None and ShareGroupTargetAssignmentMemberValue(
                topic_partitions=topics_of(share, TopicPartition)
            )
        case ShareCurrentRecord(group_id, member_id, current):
            kind = _CURRENT
            key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            value = current is not None and _current_value(current)
        case ShareStateRecord(group_id, begun, deleting):
            kind, key = _STATE, ShareGroupStatePartitionMetadataKey(group_id=group_id)
            value = begun is not None and _state_value(begun, deleting)
    return encode_versioned(key, kind), encode_versioned(value, _VALUE_VERSION) if value else None


def decode(kind: int, key: bytes, value: bytes | None) -> ShareGroupRecord | None:
    """Decode a record; None if `kind` is not a share group's record type. Raises WireError."""
    read = _READERS.get(kind)
    return None if read is None else read(key, value)


def _current_value(current: ShareCurrent) -> ShareGroupCurrentMemberAssignmentValue:
    return ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=_STABLE,
        assigned_partitions=topics_of(current.assigned, TopicPartitions),
    )


def _state_value(
    begun: tuple[TopicState, ...], deleting: tuple[TopicState, ...]
) -> ShareGroupStatePartitionMetadataValue:
    return ShareGroupStatePartitionMetadataValue(
        initialized_topics=[
            TopicPartitionsInfo(
                topic_id=topic.id, topic_name=topic.name, partitions=sorted(topic.partitions)
            )
            for topic in begun
        ],
        # Kafka's DeletingTopics has no partitions, so they are stored in InitializingTopics, which
        # Kafka does not evaluate for a topic that is being deleted.
        initializing_topics=[
            TopicPartitionsInfo(
                topic_id=topic.id, topic_name=topic.name, partitions=sorted(topic.partitions)
            )
            for topic in deleting
        ],
        deleting_topics=[TopicInfo(topic_id=topic.id, topic_name=topic.name) for topic in deleting],
    )


def _read_member(key: bytes, value: bytes | None) -> ShareMemberRecord:
    of = decode_versioned(ShareGroupMemberMetadataKey, key)
    if value is None:
        return ShareMemberRecord(of.group_id, of.member_id, None)
    stored = decode_versioned(ShareGroupMemberMetadataValue, value)
    metadata = ShareMemberMetadata(
        stored.rack_id,
        stored.client_id,
        stored.client_host,
        tuple(stored.subscribed_topic_names),
    )
    return ShareMemberRecord(of.group_id, of.member_id, metadata)


def _read_group(key: bytes, value: bytes | None) -> ShareEpochRecord:
    group_id = decode_versioned(ShareGroupMetadataKey, key).group_id
    if value is None:
        return ShareEpochRecord(group_id, None)
    stored = decode_versioned(ShareGroupMetadataValue, value)
    return ShareEpochRecord(group_id, stored.epoch, stored.metadata_hash)


def _read_target_epoch(key: bytes, value: bytes | None) -> ShareTargetEpochRecord:
    group_id = decode_versioned(ShareGroupTargetAssignmentMetadataKey, key).group_id
    if value is None:
        return ShareTargetEpochRecord(group_id, None)
    stored = decode_versioned(ShareGroupTargetAssignmentMetadataValue, value)
    return ShareTargetEpochRecord(group_id, stored.assignment_epoch, stored.assignment_timestamp)


def _read_target(key: bytes, value: bytes | None) -> ShareTargetRecord:
    of = decode_versioned(ShareGroupTargetAssignmentMemberKey, key)
    if value is None:
        return ShareTargetRecord(of.group_id, of.member_id, None)
    stored = decode_versioned(ShareGroupTargetAssignmentMemberValue, value)
    return ShareTargetRecord(of.group_id, of.member_id, share_of(stored.topic_partitions))


def _read_current(key: bytes, value: bytes | None) -> ShareCurrentRecord:
    of = decode_versioned(ShareGroupCurrentMemberAssignmentKey, key)
    if value is None:
        return ShareCurrentRecord(of.group_id, of.member_id, None)
    stored = decode_versioned(ShareGroupCurrentMemberAssignmentValue, value)
    current = ShareCurrent(
        stored.member_epoch, stored.previous_member_epoch, share_of(stored.assigned_partitions)
    )
    return ShareCurrentRecord(of.group_id, of.member_id, current)


def _read_state(key: bytes, value: bytes | None) -> ShareStateRecord:
    group_id = decode_versioned(ShareGroupStatePartitionMetadataKey, key).group_id
    if value is None:
        return ShareStateRecord(group_id, None)
    stored = decode_versioned(ShareGroupStatePartitionMetadataValue, value)
    partitions = {each.topic_id: each.partitions for each in stored.initializing_topics}
    return ShareStateRecord(
        group_id,
        tuple(
            TopicState(each.topic_id, each.topic_name, frozenset(each.partitions))
            for each in stored.initialized_topics
        ),
        tuple(
            TopicState(each.topic_id, each.topic_name, frozenset(partitions.get(each.topic_id, ())))
            for each in stored.deleting_topics
        ),
    )


_READERS: dict[int, Callable[[bytes, bytes | None], ShareGroupRecord]] = {
    _MEMBER: _read_member,
    _GROUP: _read_group,
    _TARGET: _read_target_epoch,
    _TARGET_SHARE: _read_target,
    _CURRENT: _read_current,
    _STATE: _read_state,
}
