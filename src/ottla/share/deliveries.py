"""The values of a share partition: limits, batches, records acquired and archived."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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

    `complete_count` is the number of offsets from `start_offset` on in a final state. For the
    records in `letters`, dead letters are written once the changes are; then they are `archive`d.
    """

    start_offset: int
    batches: tuple[StateBatch, ...]
    complete_count: int
    letters: tuple[Dead, ...] = ()
