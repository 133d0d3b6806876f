"""The records of `__share_group_state`, as values and as Kafka's bytes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.states import DeliveryState, StateBatch, overlay
from ottla.wire import stored_share_state as wire
from ottla.wire.errors import WireError
from ottla.wire.stored import decode_versioned, encode_versioned

_SNAPSHOT, _UPDATE = 0, 1
_VALUE_VERSION = 0
# As a start offset: not determined yet, or unchanged in an update. As a count: not known.
UNKNOWN = -1

_INT32_MAX = 2**31 - 1
# One less than the largest value of the type: the broker adds 1 to a last offset for the end of the
# window, and to a delivery count for the next delivery.
_OFFSET_MAX = 2**63 - 2
_DELIVERIES_MAX = 2**15 - 2


class ShareKey(NamedTuple):
    """A share partition: one partition as read by one group."""

    group_id: str
    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class ShareState:
    """The durable state of a share partition.

    `state_epoch` rises whenever the state is initialized again. `leader_epoch` is that of the
    leader that read or wrote the state last. `start_offset` is UNKNOWN until a leader has
    determined it.
    """

    state_epoch: int
    start_offset: int
    leader_epoch: int = 0
    complete_count: int = UNKNOWN
    batches: tuple[StateBatch, ...] = ()
    snapshot_epoch: int = 0
    created_ms: int = 0
    written_ms: int = 0

    @property
    def next_snapshot_epoch(self) -> int:
        """The snapshot epoch after this one; after the largest int32 comes 0."""
        return 0 if self.snapshot_epoch == _INT32_MAX else self.snapshot_epoch + 1


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """The whole state of a share partition; a state of None is a tombstone."""

    key: ShareKey
    state: ShareState | None


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """The changes since the previous record; `start_offset` is UNKNOWN if it has not changed."""

    key: ShareKey
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]

    def applied_to(self, state: ShareState) -> ShareState:
        """The state after this update."""
        start = state.start_offset if self.start_offset == UNKNOWN else self.start_offset
        return replace(
            state,
            leader_epoch=self.leader_epoch,
            start_offset=start,
            complete_count=self.complete_count,
            batches=overlay(state.batches, self.batches, start),
        )


ShareRecord = SnapshotRecord | UpdateRecord


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value; a tombstone's value is None."""
    group_id, topic_id, partition = record.key
    if isinstance(record, UpdateRecord):
        key = wire.ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition)
        update = wire.ShareUpdateValue(
            snapshot_epoch=record.snapshot_epoch,
            leader_epoch=record.leader_epoch,
            start_offset=record.start_offset,
            delivery_complete_count=record.complete_count,
            state_batches=_written(record.batches),
        )
        return encode_versioned(key, _UPDATE), encode_versioned(update, _VALUE_VERSION)
    of = wire.ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    state = record.state
    if state is None:
        return encode_versioned(of, _SNAPSHOT), None
    snapshot = wire.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_written(state.batches),
    )
    return encode_versioned(of, _SNAPSHOT), encode_versioned(snapshot, _VALUE_VERSION)


def decode(key: bytes, value: bytes | None) -> ShareRecord | None:
    """Decode a record; None for a record type that this broker does not know.

    Raises OttlaError (CORRUPT_MESSAGE) if the bytes are invalid.
    """
    try:
        kind = int.from_bytes(key[:2], "big")
        if kind == _SNAPSHOT:
            of = decode_versioned(wire.ShareSnapshotKey, key)
            share_key = ShareKey(of.group_id, of.topic_id, of.partition)
            return SnapshotRecord(share_key, None if value is None else _read_snapshot(value))
        if kind == _UPDATE and value is not None:
            return _read_update(decode_versioned(wire.ShareUpdateKey, key), value)
    except (WireError, ValueError) as error:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE, f"a record of __share_group_state cannot be read: {error}"
        ) from error
    return None


def _written(batches: Iterable[StateBatch]) -> list[wire.StateBatch]:
    return [
        wire.StateBatch(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries
        )
        for first, last, state, deliveries in batches
    ]


def _read(batches: Iterable[wire.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            _in_range("first offset", each.first_offset, 0, _OFFSET_MAX),
            _in_range("last offset", each.last_offset, each.first_offset, _OFFSET_MAX),
            DeliveryState(each.delivery_state),
            _in_range("delivery count", each.delivery_count, 0, _DELIVERIES_MAX),
        )
        for each in batches
    )


def _in_range(what: str, number: int, least: int, most: int) -> int:
    if not least <= number <= most:
        raise ValueError(f"{what} {number} is not in {least}..{most}")
    return number


def _check(stored: wire.ShareSnapshotValue | wire.ShareUpdateValue) -> None:
    """Raise ValueError if a number is outside the range that a coordinator writes."""
    _in_range("snapshot epoch", stored.snapshot_epoch, 0, _INT32_MAX)
    _in_range("leader epoch", stored.leader_epoch, UNKNOWN, _INT32_MAX)
    _in_range("start offset", stored.start_offset, UNKNOWN, _OFFSET_MAX)
    _in_range("complete count", stored.delivery_complete_count, UNKNOWN, _INT32_MAX)


def _read_snapshot(value: bytes) -> ShareState:
    stored = decode_versioned(wire.ShareSnapshotValue, value)
    _check(stored)
    _in_range("state epoch", stored.state_epoch, 0, _INT32_MAX)
    return ShareState(
        state_epoch=stored.state_epoch,
        start_offset=stored.start_offset,
        leader_epoch=stored.leader_epoch,
        complete_count=stored.delivery_complete_count,
        batches=_read(stored.state_batches),
        snapshot_epoch=stored.snapshot_epoch,
        created_ms=stored.create_timestamp,
        written_ms=stored.write_timestamp,
    )


def _read_update(of: wire.ShareUpdateKey, value: bytes) -> UpdateRecord:
    stored = decode_versioned(wire.ShareUpdateValue, value)
    _check(stored)
    return UpdateRecord(
        ShareKey(of.group_id, of.topic_id, of.partition),
        stored.snapshot_epoch,
        stored.leader_epoch,
        stored.start_offset,
        stored.delivery_complete_count,
        _read(stored.state_batches),
    )
