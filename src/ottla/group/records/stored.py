"""The records of `__consumer_offsets`, as values and as Kafka's bytes.

The first int16 of a key says what the record is (Kafka's CoordinatorRecordType), that of a value
says its version. Versions written are those of Kafka 4.3: offsets as version 4 (version 1 with
an expiry of its own), groups as version 3.
"""

from dataclasses import dataclass, replace
from typing import get_args
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, TopicPartition
from ottla.group.records import assignment
from ottla.group.records.consumer import ConsumerGroupRecord
from ottla.group.records.share import ShareGroupRecord
from ottla.wire.errors import WireError
from ottla.wire.stored import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_versioned,
    encode_versioned,
)

_LEGACY_OFFSET_COMMIT = 0
_OFFSET_COMMIT = 1
_GROUP_METADATA = 2

_OFFSET_VERSION = 4
_OFFSET_WITH_EXPIRY_VERSION = 1
_GROUP_VERSION = 3


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's committed offset in a partition."""

    offset: int
    # The epoch of the last record read, -1 if the client does not know it.
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    # When the offset expires, whatever the settings; only clients before OffsetCommit v5 set it.
    expire_timestamp_ms: int | None = None
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member of a classic group as its group's record has it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    # Its metadata for the leader under the protocol in use.
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A classic group as its record has it: the members at the last assignment."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    # When the group entered its state; -1 if the record is older than that field.
    state_timestamp_ms: int
    members: tuple[StoredMember, ...]

    def with_member_id(self, instance_id: str, member_id: str) -> "StoredGroup":
        """Return a copy in which the member with `instance_id` has `member_id`.

        Returns the group itself if there is no such member, or it has that member id already.
        """
        old = next((one for one in self.members if one.group_instance_id == instance_id), None)
        if old is None or old.member_id == member_id:
            return self
        renamed = replace(old, member_id=member_id)
        return replace(
            self,
            leader=member_id if self.leader == old.member_id else self.leader,
            members=tuple(renamed if one is old else one for one in self.members),
        )

    def is_renamed(self, other: "StoredGroup") -> bool:
        """Whether `other` is equal, except perhaps for the member ids of static members."""
        renamed = self
        for one in other.members:
            if one.group_instance_id is not None:
                renamed = renamed.with_member_id(one.group_instance_id, one.member_id)
        return renamed == other


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """A committed offset, or its tombstone."""

    group_id: str
    topic_partition: TopicPartition
    committed: CommittedOffset | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group's membership, or its tombstone."""

    group_id: str
    group: StoredGroup | None


CoordinatorRecord = OffsetRecord | GroupRecord | ConsumerGroupRecord | ShareGroupRecord

_ASSIGNMENTS = assignment.by_number((*get_args(ConsumerGroupRecord), *get_args(ShareGroupRecord)))


def encode(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value; a tombstone's value is None."""
    match record:
        case OffsetRecord(group_id, (topic, partition), committed):
            key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
            value = None if committed is None else _encode_offset(committed)
            return encode_versioned(key, _OFFSET_COMMIT), value
        case GroupRecord(group_id, group):
            value = None if group is None else _encode_group(group)
            return encode_versioned(GroupMetadataKey(group=group_id), _GROUP_METADATA), value
        case _:
            return assignment.encode(record)


def decode(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Decode a record; None for a record type that this broker does not know.

    Raises OttlaError (CORRUPT_MESSAGE) if the bytes are invalid.
    """
    try:
        kind = int.from_bytes(key[:2], "big")
        if kind in (_OFFSET_COMMIT, _LEGACY_OFFSET_COMMIT):
            # Both record types have the same fields, and only the type number differs.
            key = _OFFSET_COMMIT.to_bytes(2, "big") + key[2:]
            of = decode_versioned(OffsetCommitKey, key)
            committed = None if value is None else _decode_offset(value)
            return OffsetRecord(of.group, TopicPartition(of.topic, of.partition), committed)
        if kind == _GROUP_METADATA:
            group_id = decode_versioned(GroupMetadataKey, key).group
            return GroupRecord(group_id, None if value is None else _decode_group(value))
        record_type = _ASSIGNMENTS.get(kind)
        return None if record_type is None else assignment.decode(record_type, key, value)
    except (WireError, ValueError) as error:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE, f"a record of __consumer_offsets cannot be read: {error}"
        ) from error


def _encode_offset(committed: CommittedOffset) -> bytes:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        topic_id=committed.topic_id,
    )
    if committed.expire_timestamp_ms is None:
        return encode_versioned(value, _OFFSET_VERSION)
    value.expire_timestamp = committed.expire_timestamp_ms
    return encode_versioned(value, _OFFSET_WITH_EXPIRY_VERSION)


def _decode_offset(value: bytes) -> CommittedOffset:
    stored = decode_versioned(OffsetCommitValue, value)
    return CommittedOffset(
        offset=stored.offset,
        leader_epoch=stored.leader_epoch,
        metadata=stored.metadata,
        commit_timestamp_ms=stored.commit_timestamp,
        expire_timestamp_ms=None if stored.expire_timestamp < 0 else stored.expire_timestamp,
        topic_id=stored.topic_id,
    )


def _encode_group(group: StoredGroup) -> bytes:
    return encode_versioned(
        GroupMetadataValue(
            protocol_type=group.protocol_type,
            generation=group.generation,
            protocol=group.protocol_name,
            leader=group.leader,
            current_state_timestamp=group.state_timestamp_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.subscription,
                    assignment=member.assignment,
                )
                for member in group.members
            ],
        ),
        _GROUP_VERSION,
    )


def _decode_group(value: bytes) -> StoredGroup:
    stored = decode_versioned(GroupMetadataValue, value)
    return StoredGroup(
        protocol_type=stored.protocol_type,
        generation=stored.generation,
        protocol_name=stored.protocol,
        leader=stored.leader,
        state_timestamp_ms=stored.current_state_timestamp,
        members=tuple(
            StoredMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Version 0 has no rebalance timeout of its own.
                rebalance_timeout_ms=member.session_timeout
                if member.rebalance_timeout < 0
                else member.rebalance_timeout,
                session_timeout_ms=member.session_timeout,
                subscription=bytes(member.subscription),
                assignment=bytes(member.assignment),
            )
            for member in stored.members
        ),
    )


def partition_of(group_id: str, partition_count: int) -> int:
    """Kafka's rule: Java's hash of the group id, without its sign, modulo the partitions."""
    return (java_string_hash(group_id) & 0x7FFFFFFF) % partition_count


def java_string_hash(text: str) -> int:
    """`String.hashCode`: base 31 over UTF-16 units, as unsigned 32 bits."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value
