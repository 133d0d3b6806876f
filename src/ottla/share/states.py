"""States of a record in a share group, and runs of records that share one."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple


class DeliveryState(IntEnum):
    """Where a record stands, by Kafka's numbers.

    AVAILABLE: it may be given to a member. ACQUIRED: a member has it. ARCHIVING: it is not
    given out any more, and a dead letter is to be written (KIP-1191). Two are final:
    ACKNOWLEDGED, a member accepted it; ARCHIVED, it was given up, or there is no such record.
    """

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self in (DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED)


class Acknowledge(IntEnum):
    """What a member says of a record it has. GAP: there is no record at that offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class StateBatch(NamedTuple):
    """What is known of the offsets from `first` to `last`, both included."""

    first: int
    last: int
    state: DeliveryState
    deliveries: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def overlay(
    known: Sequence[StateBatch], changes: Iterable[StateBatch], start: int
) -> tuple[StateBatch, ...]:
    """`known` with `changes` over it, from `start` on; neighbours that are alike become one.

    What is final stays so: a change that comes late takes nothing back.
    """
    batches = list(known)
    for change in changes:
        batches = _over(batches, change)
    return tuple(_joined(batches, start))


def _over(known: list[StateBatch], change: StateBatch) -> list[StateBatch]:
    if not known or known[-1].last < change.first:
        return [*known, change]
    result: list[StateBatch] = []
    position = change.first
    for batch in known:
        if batch.last < change.first or batch.first > change.last:
            result.append(batch)
            continue
        if batch.first < change.first:
            result.append(batch._replace(last=change.first - 1))
        inner_first, inner_last = max(batch.first, change.first), min(batch.last, change.last)
        if batch.state.is_final and not change.state.is_final:
            if position < inner_first:
                result.append(change._replace(first=position, last=inner_first - 1))
            result.append(batch._replace(first=inner_first, last=inner_last))
            position = inner_last + 1
        if batch.last > change.last:
            result.append(batch._replace(first=change.last + 1))
    if position <= change.last:
        result.append(change._replace(first=position))
    result.sort()
    return result


def _joined(batches: Iterable[StateBatch], start: int) -> list[StateBatch]:
    joined: list[StateBatch] = []
    for batch in batches:
        if batch.last < start:
            continue
        if batch.first < start:
            batch = batch._replace(first=start)
        before = joined[-1] if joined else None
        if before is not None and before.last + 1 == batch.first and before[2:] == batch[2:]:
            joined[-1] = before._replace(last=batch.last)
        else:
            joined.append(batch)
    return joined
