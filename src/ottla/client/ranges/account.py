"""What a broker's ledger says of a range of offsets, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.ledger.history import StartCause
from ottla.wire.messages.offset_ledger import OffsetLedgerResponse


@dataclass(frozen=True, slots=True)
class CompactedBy:
    """`count` offsets went in pass `number` of the leader's replica, at `at_ms`.

    With `since` below `number` in one of those passes. 0: before the replica was copied from its
    leader; -1: before a ledger was kept.
    """

    number: int
    since: int
    at_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class DeletedBy:
    """[start, end) was deleted from `first_ms` to `last_ms`; `counts` by cause."""

    start: int
    end: int
    counts: Mapping[StartCause, int]
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class LostBy:
    """[start, end) was committed, and then lost with the election of `leader_epoch`."""

    start: int
    end: int
    leader_epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class OffsetAccount:
    """What became of the offsets [start, end), by the leader's ledger. Times in ms since 1970.

    The terms from `data` to `unexplained` add up to end - start. `replaced` is no term: so many
    were lost once, and are other records now.
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
    """A broker's answer as a value."""
    return OffsetAccount(
        name,
        answer.broker_id,
        answer.leader_epoch,
        answer.start,
        answer.end,
        answer.log_start_offset,
        answer.high_watermark,
        answer.log_end_offset,
        answer.data,
        answer.control,
        answer.aborted,
        answer.undecided,
        answer.compacted,
        answer.deleted,
        answer.lost,
        answer.unexplained,
        answer.replaced,
        tuple(
            CompactedBy(one.pass_number, one.since, one.at_ms, one.count)
            for one in answer.compacted_by
        ),
        tuple(
            DeletedBy(
                one.start,
                one.end,
                {StartCause(n): count for n, count in zip(one.causes, one.counts, strict=True)},
                one.first_ms,
                one.last_ms,
            )
            for one in answer.deleted_by
        ),
        tuple(LostBy(one.start, one.end, one.leader_epoch, one.at_ms) for one in answer.lost_by),
    )
