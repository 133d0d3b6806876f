"""Delivery states of records in a share group, and batches of offsets with the same state."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple


class DeliveryState(IntEnum):
    """The delivery state of a record, with Kafka's numbers.

    AVAILABLE: a member can acquire it. ACQUIRED: a member has acquired it. ARCHIVING: it is not
    delivered again, and its dead letter is not written yet (KIP-1191). Two states are final:
    ACKNOWLEDGED: a member accepted it. ARCHIVED: it was rejected or exhausted its deliveries, or
    there is no record at the offset.
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
    """The acknowledge types of KIP-932. GAP: there is no record at the offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class StateBatch(NamedTuple):
    """The state and delivery count of the offsets from `first` to `last`, both included."""

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
    """`known` with `changes` applied, from offset `start` on; equal neighbours are joined.

    A final state stays: a change that arrives late does not replace it.
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
