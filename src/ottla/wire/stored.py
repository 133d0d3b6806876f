"""Stored records, whose keys and values begin with an int16 version.

Each record of `__consumer_offsets` and `__transaction_state` has a key and a value. The version of
a key is the record's type (KIP-915 separates it from the version of the value). In
`__consumer_offsets`, 1 is a committed offset (also 0, from old brokers) and 2 a classic group; in
`__transaction_state`, 0 is a transactional id. A null value is a tombstone. The two structs of the
consumer protocol are sent inside JoinGroup and SyncGroup; if their version is unknown, a reader
treats it as the highest known one.
"""

import struct as structs
from typing import Final
from uuid import UUID

from ottla.wire.codec import M, decode, encode
from ottla.wire.errors import WireError
from ottla.wire.notation import Message, array, binary, int8, int16, int32, int64, string, uuid
from ottla.wire.parts import Buffer


class OffsetCommitKey(Message, versions="0-1"):
    """The key of a committed offset."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    """A committed offset."""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: UUID = uuid("4+", tag=0, ignorable=True)


class GroupMetadataKey(Message, versions="2"):
    """The key of a classic group's state."""

    group: str = string()


class MemberMetadata(Message):
    """An element of `GroupMetadataValue.members`."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    """The last stable generation of a classic group."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)


class SubscriptionTopicPartition(Message):
    """An element of `ConsumerProtocolSubscription.owned_partitions`."""

    topic: str = string("1+")
    partitions: list[int] = array(int32, "1+")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """A member's subscription, sent to the group's leader as the metadata in JoinGroup."""

    topics: list[str] = array(string)
    user_data: bytes | None = binary(nullable="0+")
    owned_partitions: list[SubscriptionTopicPartition] = array(
        SubscriptionTopicPartition, "1+", ignorable=True
    )
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", ignorable=True)


class AssignmentTopicPartition(Message):
    """An element of `ConsumerProtocolAssignment.assigned_partitions`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """A member's assignment, which the group's leader sends in SyncGroup."""

    assigned_partitions: list[AssignmentTopicPartition] = array(AssignmentTopicPartition)
    user_data: bytes | None = binary(nullable="0+")


class TransactionLogKey(Message, versions="0"):
    """The key of the state of a transactional id."""

    transactional_id: str = string()


class PartitionsSchema(Message):
    """An element of `TransactionLogValue.transaction_partitions`."""

    topic: str = string()
    partition_ids: list[int] = array(int32)


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    """The state of a transactional id."""

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2)
    # Ottla's own: the epoch of the producer that requested this epoch, to recognize repeated
    # requests.
    last_producer_epoch: int = int16("1+", default=-1, tag=10000)


class EndTxnMarker(Message, versions="0"):
    """The value of a control record that ends a transaction."""

    coordinator_epoch: int = int32()


_FORWARD_COMPATIBLE: Final = frozenset({ConsumerProtocolSubscription, ConsumerProtocolAssignment})


_VERSION: Final = structs.Struct(">h")


def encode_versioned(message: Message, version: int) -> bytes:
    """Return the version followed by the encoded message. Raises VersionError."""
    return _VERSION.pack(version) + encode(message, version)


def read_version(buffer: Buffer) -> int:
    """Return the version at the start of a stored record. Raises WireError."""
    if len(buffer) < _VERSION.size:
        raise WireError(f"a stored record of {len(buffer)} bytes has no version")
    (version,) = _VERSION.unpack_from(buffer)
    return int(version)


def decode_versioned(cls: type[M], buffer: Buffer) -> M:
    """Return the message that follows the version at the start of `buffer`.

    For messages of the consumer protocol, a version above the highest known one is read as that
    one, as the protocol permits. Raises WireError, and VersionError for other unknown versions.
    """
    version = read_version(buffer)
    if cls in _FORWARD_COMPATIBLE:
        version = min(version, cls.__versions__[1])
    return decode(cls, version, buffer, _VERSION.size)
