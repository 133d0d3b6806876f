"""Values made of brokers' answers, above all the ledger of a range of offsets."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from ottla.base.ids import TopicPartition
from ottla.ledger.history import StartCause
from ottla.wire.messages.offset_ledger import OffsetLedgerResponse

# A dataclass.
Value = TypeVar("Value", bound=Any)


def filled(kind: type[Value], answer: object, **others: object) -> Value:
    """Return a `kind` made of `others` and, for all other fields, the values in `answer`."""
    same = {field.name for field in fields(kind)} - others.keys()
    value: Value = kind(**{name: getattr(answer, name) for name in same}, **others)
    return value


@dataclass(frozen=True, slots=True)
class CompactedBy:
    """`count` offsets were removed in cleaning pass `number` of the leader's replica, at `at_ms`.

    If `since` < `number`, it was one of the passes between them. Pass 0 means before the
    replica was copied from its leader; -1 means before the broker kept a ledger.
    """

    number: int
    since: int
    at_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class DeletedBy:
    """The offsets [start, end) were deleted from `first_ms` to `last_ms`.

    `counts` has the number of offsets per cause.
    """

    start: int
    end: int
    counts: Mapping[StartCause, int]
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class LostBy:
    """The offsets [start, end) were committed, then lost by the election in `leader_epoch`."""

    start: int
    end: int
    leader_epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class DeletionEvidence:
    """What decided that the leader's replica deleted [start, end). Times in ms, -1 for unknown.

    `by` is a setting with its value, or the principal that deleted the records. `newest_ms` is the
    greatest timestamp of the deleted segment, `arrived_ms` when its last batch was written.
    """

    start: int
    end: int
    at_ms: int
    by: str
    newest_ms: int
    arrived_ms: int


@dataclass(frozen=True, slots=True)
class OffsetAccount:
    """What became of the offsets [start, end), by the leader's ledger. Times in ms since 1970.

    The terms from `data` to `unexplained` add up to end - start. `replaced` is not a term: it
    counts offsets that were lost once, and belong to other records now.
    """

    name: TopicPartition
    broker_id: int
    leader_epoch: int
    start: int
    end: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    data: int
    control: int
    aborted: int
    undecided: int
    compacted: int
    deleted: int
    lost: int
    unexplained: int
    replaced: int
    compacted_by: tuple[CompactedBy, ...]
    deleted_by: tuple[DeletedBy, ...]
    lost_by: tuple[LostBy, ...]
    evidence: tuple[DeletionEvidence, ...] = ()


def account_of(name: TopicPartition, answer: OffsetLedgerResponse) -> OffsetAccount:
    """Convert a broker's answer to a value."""
    return filled(
        OffsetAccount,
        answer,
        name=name,
        compacted_by=tuple(
            filled(CompactedBy, one, number=one.pass_number) for one in answer.compacted_by
        ),
        deleted_by=tuple(
            filled(
                DeletedBy,
                one,
                counts=dict(zip(map(StartCause, one.causes), one.counts, strict=True)),
            )
            for one in answer.deleted_by
        ),
        lost_by=tuple(filled(LostBy, one) for one in answer.lost_by),
        evidence=tuple(filled(DeletionEvidence, one) for one in answer.evidence),
    )
