"""A broker's ledger of a range of offsets, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.ledger.history import StartCause
from ottla.wire.messages.offset_ledger import OffsetLedgerResponse


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


def account_of(name: TopicPartition, answer: OffsetLedgerResponse) -> OffsetAccount:
    """Convert a broker's answer to a value."""
    return OffsetAccount(
        name=name,
        broker_id=answer.broker_id,
        leader_epoch=answer.leader_epoch,
        start=answer.start,
        end=answer.end,
        log_start_offset=answer.log_start_offset,
        high_watermark=answer.high_watermark,
        log_end_offset=answer.log_end_offset,
        data=answer.data,
        control=answer.control,
        aborted=answer.aborted,
        undecided=answer.undecided,
        compacted=answer.compacted,
        deleted=answer.deleted,
        lost=answer.lost,
        unexplained=answer.unexplained,
        replaced=answer.replaced,
        compacted_by=tuple(
            CompactedBy(one.pass_number, one.since, one.at_ms, one.count)
            for one in answer.compacted_by
        ),
        deleted_by=tuple(
            DeletedBy(
                one.start,
                one.end,
                dict(zip(map(StartCause, one.causes), one.counts, strict=True)),
                one.first_ms,
                one.last_ms,
            )
            for one in answer.deleted_by
        ),
        lost_by=tuple(
            LostBy(one.start, one.end, one.leader_epoch, one.at_ms) for one in answer.lost_by
        ),
    )
