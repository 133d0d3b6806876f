"""The records of groups of the consumer protocol, as values and as Kafka's bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ottla.group.records.assignment import GroupEpoch, OfMember, TargetEpoch, TargetShare
from ottla.group.values.member import OfferedProtocol
from ottla.group.values.topics import AssignedSlot, Share, by_topic, share_of
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


class MemberState(IntEnum):
    """A member's progress towards its target, by Kafka's numbers.

    STABLE: it has its target. UNREVOKED_PARTITIONS: it must revoke some partitions first.
    UNRELEASED_PARTITIONS: it waits for partitions that other members have not revoked yet.
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
    key_type = ConsumerGroupMetadataKey
    value_type = ConsumerGroupMetadataValue


class MemberRecord(OfMember[MemberMetadata]):
    """A member's metadata, or its tombstone."""

    __slots__ = ()
    key_type = ConsumerGroupMemberMetadataKey
    value_type = ConsumerGroupMemberMetadataValue

    def to_value(self) -> ConsumerGroupMemberMetadataValue:
        assert self.content is not None
        metadata = self.content
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

    @classmethod
    def read(cls, stored: ConsumerGroupMemberMetadataValue) -> tuple[MemberMetadata]:
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
        return (metadata,)


class TargetEpochRecord(TargetEpoch):
    """The group epoch that the target assignment is for, or its tombstone."""

    __slots__ = ()
    key_type = ConsumerGroupTargetAssignmentMetadataKey
    value_type = ConsumerGroupTargetAssignmentMetadataValue


class TargetRecord(TargetShare):
    """A member's part of the target assignment, or its tombstone."""

    __slots__ = ()
    key_type = ConsumerGroupTargetAssignmentMemberKey
    value_type = ConsumerGroupTargetAssignmentMemberValue
    entry_type = TopicPartition


class CurrentRecord(OfMember[Current]):
    """A member's current assignment, or its tombstone."""

    __slots__ = ()
    key_type = ConsumerGroupCurrentMemberAssignmentKey
    value_type = ConsumerGroupCurrentMemberAssignmentValue

    def to_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        assert self.content is not None
        current = self.content
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=current.state,
            assigned_partitions=_held_topics(current, current.assigned),
            partitions_pending_revocation=_held_topics(current, current.revoking),
        )

    @classmethod
    def read(cls, stored: ConsumerGroupCurrentMemberAssignmentValue) -> tuple[Current]:
        current = Current(
            epoch=stored.member_epoch,
            previous_epoch=stored.previous_member_epoch,
            state=MemberState(stored.state),
            assigned=share_of(stored.assigned_partitions),
            revoking=share_of(stored.partitions_pending_revocation),
            given=_read_given((*stored.assigned_partitions, *stored.partitions_pending_revocation)),
        )
        return (current,)


ConsumerGroupRecord = EpochRecord | MemberRecord | TargetEpochRecord | TargetRecord | CurrentRecord


def _classic_value(classic: ClassicMember | None) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
        ],
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


def _read_classic(stored: ClassicMemberMetadata | None) -> ClassicMember | None:
    if stored is None:
        return None
    return ClassicMember(
        stored.session_timeout_ms,
        tuple(
            OfferedProtocol(each.name, bytes(each.metadata)) for each in stored.supported_protocols
        ),
    )


def _read_given(topics: Iterable[TopicPartitions]) -> dict[AssignedSlot, int]:
    """Read the epochs of partitions; records from before KIP-1251 have none."""
    return {
        AssignedSlot(topic.topic_id, partition): epoch
        for topic in topics
        for partition, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
    }
