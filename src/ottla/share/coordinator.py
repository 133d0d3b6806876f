"""The coordinator of the share state in one partition of `__share_group_state`.

As in `ottla.group.coordinator`: commands decide, `apply` alone changes the state, so that
replaying the partition in order rebuilds it. The leaders of partitions send the commands; an old
leader epoch, or an old state epoch, is fenced.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.records import (
    UNKNOWN,
    ShareKey,
    ShareRecord,
    ShareState,
    SnapshotRecord,
    UpdateRecord,
)
from ottla.share.states import StateBatch, overlay


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """Values of the broker settings `share.coordinator.*`, with Kafka's defaults."""

    # How many updates follow a snapshot before the next one is written.
    updates_per_snapshot: int = 500
    # The age at which a snapshot is written again, so that records before it can be deleted.
    snapshot_interval_ms: int = 300_000


# A request that waits for its answer; only the shell looks inside.
Ticket = object


@dataclass(frozen=True, slots=True)
class ShareReply:
    """The answer to the request of `ticket`."""

    ticket: Ticket
    message: Any


@dataclass(slots=True)
class ShareDecision:
    """Records to append and apply; answers to give once they are committed."""

    records: list[ShareRecord] = field(default_factory=list)
    replies: list[ShareReply] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """The outcome of a command on one key: an error, or its state."""

    code: ErrorCode = ErrorCode.NONE
    state: ShareState | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """The arguments of WriteShareGroupState. `start_offset` is UNKNOWN if it has not changed."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


class ShareCoordinator:
    """Share state by key, and the commands on it."""

    def __init__(self, settings: ShareStateSettings) -> None:
        self._settings = settings
        self.states: dict[ShareKey, ShareState] = {}
        # The offset of each key's latest snapshot: records below the lowest can be deleted.
        self._snapshots: dict[ShareKey, int] = {}
        # How many updates each key has had since its snapshot.
        self._updates: dict[ShareKey, int] = {}
        # For keys whose snapshot could not be read: the state according to updates alone.
        self._left: dict[ShareKey, ShareState] = {}

    def initialize(
        self, ticket: Ticket, key: ShareKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> ShareDecision:
        """Initialize the state of a share partition, or reset it in a higher state epoch.

        A request with the present state epoch is a repetition: it changes nothing, so that it
        does not undo later writes. If the snapshot was lost and updates were found, the state
        continues from the updates, unless the request names a start offset.
        """
        known = self.states.get(key)
        if known is not None and state_epoch < known.state_epoch:
            return _refused(ticket, _fenced_state(key, known, state_epoch))
        if known is not None and state_epoch == known.state_epoch:
            return _answer(ticket, KeyAnswer(state=known))
        left = self._left.get(key)
        if left is not None and start_offset == UNKNOWN:
            state = replace(left, state_epoch=state_epoch, created_ms=now_ms)
            return _begun(ticket, _snapshot(key, state, now_ms))
        before = known or left
        state = ShareState(
            state_epoch,
            start_offset,
            snapshot_epoch=0 if before is None else before.next_snapshot_epoch,
            complete_count=UNKNOWN if start_offset == UNKNOWN else 0,
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return _begun(ticket, SnapshotRecord(key, state))

    def read(self, ticket: Ticket, key: ShareKey, leader_epoch: int) -> ShareDecision:
        """Read a share partition's state, and store the leader epoch to fence earlier leaders."""
        try:
            known = self._current(key, leader_epoch)
        except OttlaError as error:
            return _refused(ticket, error)
        if leader_epoch <= known.leader_epoch:
            return _answer(ticket, KeyAnswer(state=known))
        noted = UpdateRecord(
            key, known.snapshot_epoch, leader_epoch, UNKNOWN, known.complete_count, ()
        )
        return ShareDecision(
            [noted], [ShareReply(ticket, KeyAnswer(state=noted.applied_to(known)))]
        )

    def write(self, ticket: Ticket, key: ShareKey, written: Write, now_ms: int) -> ShareDecision:
        """Store what has changed in a share partition, as an update or a new snapshot."""
        try:
            known = self._current(key, written.leader_epoch)
            if written.state_epoch < known.state_epoch:
                raise _fenced_state(key, known, written.state_epoch)
            if written.state_epoch > known.state_epoch:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST,
                    f"{_name(key)} is in state epoch {known.state_epoch}, "
                    f"{written.state_epoch} is not known",
                )
        except OttlaError as error:
            return _refused(ticket, error)
        update = UpdateRecord(
            key,
            known.snapshot_epoch,
            written.leader_epoch,
            max(written.start_offset, known.start_offset),
            written.complete_count,
            written.batches,
        )
        record: ShareRecord = update
        if self._updates.get(key, 0) >= self._settings.updates_per_snapshot:
            record = _snapshot(key, update.applied_to(known), now_ms)
        return ShareDecision([record], [ShareReply(ticket, KeyAnswer())])

    def delete(self, ticket: Ticket, key: ShareKey) -> ShareDecision:
        """Delete the state of a share partition; missing state counts as deleted."""
        is_known = key in self.states or key in self._left
        records: list[ShareRecord] = [SnapshotRecord(key, None)] if is_known else []
        return ShareDecision(records, [ShareReply(ticket, KeyAnswer())])

    def summary(self, ticket: Ticket, key: ShareKey) -> ShareDecision:
        """The group's start offset in a share partition; does not store the leader epoch."""
        known = self.states.get(key)
        if known is None:
            known = ShareState(0, UNKNOWN)
        return _answer(ticket, KeyAnswer(state=known))

    def refresh(self, now_ms: int) -> ShareDecision:
        """Replace snapshots that are too old, so that the beginning of the log can be deleted."""
        oldest_ms = now_ms - self._settings.snapshot_interval_ms
        return ShareDecision(
            [
                _snapshot(key, state, now_ms)
                for key, state in self.states.items()
                if state.written_ms <= oldest_ms
            ]
        )

    def needed_from(self, end: int) -> int:
        """The offset below which no record is needed; `end` if there is no state at all."""
        return min(self._snapshots.values(), default=end)

    def apply(self, record: ShareRecord, offset: int) -> None:
        """Apply the record at `offset` to the state: when it is appended, or replayed."""
        key = record.key
        if isinstance(record, UpdateRecord):
            known = self.states.get(key)
            # An update of another snapshot epoch was written before the state was deleted.
            if known is not None and known.snapshot_epoch == record.snapshot_epoch:
                self.states[key] = record.applied_to(known)
                self._updates[key] = self._updates.get(key, 0) + 1
            elif known is None:
                self._keep_left(record)
            return
        self._left.pop(key, None)
        self._updates.pop(key, None)
        if record.state is None:
            self.states.pop(key, None)
            self._snapshots.pop(key, None)
        else:
            self.states[key] = record.state
            self._snapshots[key] = offset

    def _keep_left(self, record: UpdateRecord) -> None:
        """Keep an update without a snapshot: a later tombstone drops it, or the snapshot was lost.

        `initialize` uses what is kept.
        """
        left = self._left.get(record.key)
        if left is None or record.snapshot_epoch < left.snapshot_epoch:
            left = ShareState(0, UNKNOWN)
        self._left[record.key] = replace(
            record.applied_to(left), snapshot_epoch=record.snapshot_epoch
        )

    def _current(self, key: ShareKey, leader_epoch: int) -> ShareState:
        """The state. Raises OttlaError: UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH."""
        known = self.states.get(key)
        if known is None:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no share state of {_name(key)}: no member of the group has it yet",
            )
        if UNKNOWN < leader_epoch < known.leader_epoch:
            raise OttlaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{_name(key)} was read in leader epoch {known.leader_epoch}, {leader_epoch} is "
                "over",
            )
        return known


def _begun(ticket: Ticket, record: SnapshotRecord) -> ShareDecision:
    return ShareDecision([record], [ShareReply(ticket, KeyAnswer(state=record.state))])


def _snapshot(key: ShareKey, state: ShareState, now_ms: int) -> SnapshotRecord:
    return SnapshotRecord(
        key,
        replace(
            state,
            snapshot_epoch=state.next_snapshot_epoch,
            batches=overlay((), state.batches, state.start_offset),
            written_ms=now_ms,
        ),
    )


def _fenced_state(key: ShareKey, known: ShareState, state_epoch: int) -> OttlaError:
    return OttlaError(
        ErrorCode.FENCED_STATE_EPOCH,
        f"the share state of {_name(key)} is in epoch {known.state_epoch}, {state_epoch} is over",
    )


def _name(key: ShareKey) -> str:
    return f"group {key.group_id}, topic {key.topic_id}, partition {key.partition}"


def _answer(ticket: Ticket, answered: KeyAnswer) -> ShareDecision:
    return ShareDecision(replies=[ShareReply(ticket, answered)])


def _refused(ticket: Ticket, error: OttlaError) -> ShareDecision:
    return _answer(ticket, KeyAnswer(error.code, message=error.message))
