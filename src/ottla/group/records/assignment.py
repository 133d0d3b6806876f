"""The records that consumer groups and share groups have in common.

Each kind of group has its own record types, with keys of its own; their content is the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from ottla.group.values.topics import Share, share_of, topics_of
from ottla.wire.notation import Message
from ottla.wire.stored import decode_versioned, encode_versioned

_VALUE_VERSION = 0

T = TypeVar("T")


class AssignmentRecord:
    """A record with a key and a value in Kafka's format; the key's version is the record type."""

    __slots__ = ()

    key_type: ClassVar[type[Message]]
    value_type: ClassVar[Any]

    @property
    def is_tombstone(self) -> bool:
        raise NotImplementedError

    def to_value(self) -> Message:
        """The value of a record that is no tombstone."""
        raise NotImplementedError

    @classmethod
    def read(cls, stored: Any) -> tuple[Any, ...]:
        """The record's fields after those of the key, from its value."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class GroupEpoch(AssignmentRecord):
    """A group's epoch and the hash of the topics it was raised for; or its tombstone."""

    group_id: str
    epoch: int | None
    topics_hash: int = 0

    @property
    def is_tombstone(self) -> bool:
        return self.epoch is None

    def to_value(self) -> Message:
        value: Message = self.value_type(epoch=self.epoch, metadata_hash=self.topics_hash)
        return value

    @classmethod
    def read(cls, stored: Any) -> tuple[Any, ...]:
        return stored.epoch, stored.metadata_hash


@dataclass(frozen=True, slots=True)
class TargetEpoch(AssignmentRecord):
    """The group epoch that the target assignment is for, or its tombstone."""

    group_id: str
    epoch: int | None
    timestamp_ms: int = 0

    @property
    def is_tombstone(self) -> bool:
        return self.epoch is None

    def to_value(self) -> Message:
        value: Message = self.value_type(
            assignment_epoch=self.epoch, assignment_timestamp=self.timestamp_ms
        )
        return value

    @classmethod
    def read(cls, stored: Any) -> tuple[Any, ...]:
        return stored.assignment_epoch, stored.assignment_timestamp


@dataclass(frozen=True, slots=True)
class TargetShare(AssignmentRecord):
    """A member's part of the target assignment, or its tombstone."""

    group_id: str
    member_id: str
    share: Share | None

    # The message of one topic.
    entry_type: ClassVar[Any]

    @property
    def is_tombstone(self) -> bool:
        return self.share is None

    def to_value(self) -> Message:
        topics = topics_of(self.share or (), self.entry_type)
        value: Message = self.value_type(topic_partitions=topics)
        return value

    @classmethod
    def read(cls, stored: Any) -> tuple[Any, ...]:
        return (share_of(stored.topic_partitions),)


@dataclass(frozen=True, slots=True)
class OfMember(AssignmentRecord, Generic[T]):
    """A member's metadata or current assignment, or the tombstone."""

    group_id: str
    member_id: str
    content: T | None

    @property
    def is_tombstone(self) -> bool:
        return self.content is None


def by_number(types: Iterable[type[AssignmentRecord]]) -> Mapping[int, type[AssignmentRecord]]:
    """Record types by the number in their keys."""
    return {each.key_type.__versions__[0]: each for each in types}


def encode(record: AssignmentRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value; a tombstone's value is None."""
    names = {each.name: getattr(record, each.name) for each in record.key_type.__fields__}
    key = encode_versioned(record.key_type(**names), record.key_type.__versions__[0])
    return key, None if record.is_tombstone else encode_versioned(record.to_value(), _VALUE_VERSION)


def decode(record_type: Any, key: bytes, value: bytes | None) -> Any:
    """Read a record of this type back. Raises WireError."""
    stored_key = decode_versioned(record_type.key_type, key)
    names = [getattr(stored_key, each.name) for each in record_type.key_type.__fields__]
    if value is None:
        return record_type(*names, None)
    return record_type(*names, *record_type.read(decode_versioned(record_type.value_type, value)))
