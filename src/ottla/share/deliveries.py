"""The values of a share partition: limits, batches, records acquired and archived."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.share.states import StateBatch


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """The limits that a group's settings set for a share partition, with Kafka's defaults."""

    # How long a record stays acquired (share.record.lock.duration.ms).
    lock_ms: int = 30_000
    # How often a record is delivered at most (share.delivery.count.limit).
    delivery_count: int = 5
    # How many records may be in flight (share.partition.max.record.locks).
    records: int = 2_000
    # Whether a member may renew a lock (share.renew.acknowledge.enable).
    renews: bool = True
    # Whether a record that no member accepts is written to a dead-letter topic.
    dead_letters: bool = False


class Found(NamedTuple):
    """A batch in the log, by its offsets. A control batch or aborted batch is not `readable`."""

    first: int
    last: int
    readable: bool = True


class Acquired(NamedTuple):
    """Neighbouring records that a member acquired, with the same delivery count."""

    first: int
    last: int
    delivery_count: int


class Acknowledged(NamedTuple):
    """A member's acknowledgement of the offsets `first` to `last`.

    `types` are values of `Acknowledge`: a single one for all offsets, or one for each offset.
    """

    first: int
    last: int
    types: Sequence[int]


class Dead(NamedTuple):
    """Records that are not delivered again, although no member accepted them.

    `rejected`: a member rejected them; otherwise they reached the delivery count limit.
    """

    first: int
    last: int
    delivery_count: int
    rejected: bool


class StateChanges(NamedTuple):
    """The changes of a share partition that its leader has to write to the share coordinator.

    `complete_count` is the number of offsets from `start_offset` on in a final state. Once the
    changes are written, dead letters are written for the records in `letters`, and then `archive`
    is called for those records.
    """

    start_offset: int
    batches: tuple[StateBatch, ...]
    complete_count: int
    letters: tuple[Dead, ...] = ()


def spans_of(batch: Acknowledged) -> list[tuple[int, int, int]]:
    """The (first, last, type) spans of an acknowledgement; neighbours of one type are joined.

    Raises OttlaError (INVALID_REQUEST).
    """
    first, last, types = batch
    size = last - first + 1
    if size <= 0 or len(types) not in (1, size):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(types)} acknowledge types for the offsets {first} to {last}: there must be one, "
            "or one for each",
        )
    if len(types) == 1:
        return [(first, last, types[0])]
    spans: list[tuple[int, int, int]] = []
    for offset, kind in enumerate(types, first):
        if spans and spans[-1][2] == kind:
            spans[-1] = (spans[-1][0], offset, kind)
        else:
            spans.append((offset, offset, kind))
    return spans


def add_to(given: list[Acquired], taken: Iterable[Acquired], batch_size: int) -> None:
    """Append acquired records to `given`; neighbours with the same delivery count are joined.

    A `batch_size` above 0 limits how many records are joined.
    """
    for each in taken:
        before = given[-1] if given else None
        if (
            before is not None
            and before.last + 1 == each.first
            and before.delivery_count == each.delivery_count
            and not 0 < batch_size <= before.last - before.first + 1
        ):
            given[-1] = before._replace(last=each.last)
        else:
            given.append(each)


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets in order; spans that touch or overlap are joined."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
