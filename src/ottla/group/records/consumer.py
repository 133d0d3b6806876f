"""The records of groups of the consumer protocol, as values and as Kafka's bytes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ottla.group.records.written import GroupEpoch, TargetEpoch, TargetShare
from ottla.group.values.member import OfferedProtocol
from ottla.group.values.shares import AssignedSlot, Share, by_topic, share_of, topics_of
from ottla.wire.stored import decode_versioned, encode_versioned
from ottla.wire.stored_consumer_groups import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)

_GROUP, _MEMBER, _TARGET, _TARGET_SHARE, _CURRENT = 3, 5, 6, 7, 8
_VALUE_VERSION = 0


class MemberState(IntEnum):
    """A member's progress towards its target, by Kafka's numbers.

    STABLE: it has its target. UNREVOKED_PARTITIONS: it must revoke some partitions first.
    UNRELEASED_PARTITIONS: it waits for some that others have not revoked yet.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """The additional metadata of a member of the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[OfferedProtocol, ...]


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member's identity and subscription; `classic` is None for the consumer protocol."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicMember | None = None


@dataclass(frozen=True, slots=True)
class Current:
    """A member's partitions in its epoch, and those it must revoke before it gets more.

    `given` has the epoch in which each partition was assigned to the member (KIP-1251); a missing
    one was assigned in the member's present epoch.
    """

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Share
    revoking: Share
    given: Mapping[AssignedSlot, int] = field(default_factory=dict)

    def given_in(self, slot: AssignedSlot) -> int:
        """The epoch in which the member got a partition that it has."""
        return self.given.get(slot, self.epoch)


class EpochRecord(GroupEpoch):
    """A group's epoch and the hash of the topics it was raised for; or its tombstone."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member, or its tombstone."""

    group_id: str
    member_id: str
    metadata: MemberMetadata | None

    @property
    def is_tombstone(self) -> bool:
        return self.metadata is None


class TargetEpochRecord(TargetEpoch):
    """The group epoch that the target assignment is for, or its tombstone."""

    __slots__ = ()


class TargetRecord(TargetShare):
    """A member's part of the target assignment, or its tombstone."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CurrentRecord:
    """A member's current assignment, or its tombstone."""

    group_id: str
    member_id: str
    current: Current | None

    @property
    def is_tombstone(self) -> bool:
        return self.current is None


ConsumerGroupRecord = EpochRecord | MemberRecord | TargetEpochRecord | TargetRecord | CurrentRecord


def encode(record: ConsumerGroupRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value; a tombstone's value is None."""
    key: Any
    value: Any
    match record:
        case EpochRecord(group_id, epoch, topics_hash):
            kind, key = _GROUP, ConsumerGroupMetadataKey(group_id=group_id)
            value = epoch is not None and ConsumerGroupMetadataValue(
                epoch=epoch, metadata_hash=topics_hash
            )
        case MemberRecord(group_id, member_id, metadata):
            kind = _MEMBER
            key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            value = metadata is not None and _member_value(metadata)
        case TargetEpochRecord(group_id, epoch, timestamp_ms):
            kind, key = _TARGET, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
            value = epoch is not None and ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=timestamp_ms
            )
        case TargetRecord(group_id, member_id, share):
            kind = _TARGET_SHARE
            key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            value = share is not None and ConsumerGroupTargetAssignmentMemberValue(
                topic_partitions=topics_of(share, TopicPartition)
            )
        case CurrentRecord(group_id, member_id, current):
            kind = _CURRENT
            key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            value = current is not None and _current_value(current)
    return encode_versioned(key, kind), encode_versioned(value, _VALUE_VERSION) if value else None


def decode(kind: int, key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """Read a record back; None for a kind that is none of these. Raises WireError."""
    read = _READERS.get(kind)
    return None if read is None else read(key, value)


def _member_value(metadata: MemberMetadata) -> ConsumerGroupMemberMetadataValue:
    return ConsumerGroupMemberMetadataValue(
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=list(metadata.topic_names),
        subscribed_topic_regex=metadata.topic_regex,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        server_assignor=metadata.server_assignor,
        classic_member_metadata=_classic_value(metadata.classic),
    )


def _classic_value(classic: ClassicMember | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
        ],
    )


def _current_value(current: Current) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_held_topics(current, current.assigned),
        partitions_pending_revocation=_held_topics(current, current.revoking),
    )


def _held_topics(current: Current, share: Share) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=list(partitions),
            assignment_epochs=[
                current.given_in(AssignedSlot(topic_id, each)) for each in partitions
            ],
        )
        for topic_id, partitions in by_topic(share).items()
    ]


def _read_group(key: bytes, value: bytes | None) -> EpochRecord:
    group_id = decode_versioned(ConsumerGroupMetadataKey, key).group_id
    if value is None:
        return EpochRecord(group_id, None)
    stored = decode_versioned(ConsumerGroupMetadataValue, value)
    return EpochRecord(group_id, stored.epoch, stored.metadata_hash)


def _read_member(key: bytes, value: bytes | None) -> MemberRecord:
    of = decode_versioned(ConsumerGroupMemberMetadataKey, key)
    if value is None:
        return MemberRecord(of.group_id, of.member_id, None)
    stored = decode_versioned(ConsumerGroupMemberMetadataValue, value)
    metadata = MemberMetadata(
        instance_id=stored.instance_id,
        rack_id=stored.rack_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        topic_names=tuple(stored.subscribed_topic_names),
        topic_regex=stored.subscribed_topic_regex or None,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        server_assignor=stored.server_assignor,
        classic=_read_classic(stored.classic_member_metadata),
    )
    return MemberRecord(of.group_id, of.member_id, metadata)


def _read_classic(stored: ClassicMemberMetadata | None) -> ClassicMember | None:
    if stored is None:
        return None
    return ClassicMember(
        stored.session_timeout_ms,
        tuple(
            OfferedProtocol(each.name, bytes(each.metadata)) for each in stored.supported_protocols
        ),
    )


def _read_target_epoch(key: bytes, value: bytes | None) -> TargetEpochRecord:
    group_id = decode_versioned(ConsumerGroupTargetAssignmentMetadataKey, key).group_id
    if value is None:
        return TargetEpochRecord(group_id, None)
    stored = decode_versioned(ConsumerGroupTargetAssignmentMetadataValue, value)
    return TargetEpochRecord(group_id, stored.assignment_epoch, stored.assignment_timestamp)


def _read_target(key: bytes, value: bytes | None) -> TargetRecord:
    of = decode_versioned(ConsumerGroupTargetAssignmentMemberKey, key)
    if value is None:
        return TargetRecord(of.group_id, of.member_id, None)
    stored = decode_versioned(ConsumerGroupTargetAssignmentMemberValue, value)
    return TargetRecord(of.group_id, of.member_id, share_of(stored.topic_partitions))


def _read_current(key: bytes, value: bytes | None) -> CurrentRecord:
    of = decode_versioned(ConsumerGroupCurrentMemberAssignmentKey, key)
    if value is None:
        return CurrentRecord(of.group_id, of.member_id, None)
    stored = decode_versioned(ConsumerGroupCurrentMemberAssignmentValue, value)
    current = Current(
        epoch=stored.member_epoch,
        previous_epoch=stored.previous_member_epoch,
        state=MemberState(stored.state),
        assigned=share_of(stored.assigned_partitions),
        revoking=share_of(stored.partitions_pending_revocation),
        given=_read_given((*stored.assigned_partitions, *stored.partitions_pending_revocation)),
    )
    return CurrentRecord(of.group_id, of.member_id, current)


def _read_given(topics: Iterable[TopicPartitions]) -> dict[AssignedSlot, int]:
    """Records written before KIP-1251 have no epochs, so that only the present one counts."""
    return {
        AssignedSlot(topic.topic_id, partition): epoch
        for topic in topics
        for partition, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
    }


_READERS: dict[int, Callable[[bytes, bytes | None], ConsumerGroupRecord]] = {
    _GROUP: _read_group,
    _MEMBER: _read_member,
    _TARGET: _read_target_epoch,
    _TARGET_SHARE: _read_target,
    _CURRENT: _read_current,
}
