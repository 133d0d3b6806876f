"""The values of a share partition: limits, batches, records acquired and archived."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.share.states import StateBatch


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    """What the group's settings say.

    How long a record is locked, how often it is given out at most, how many may be under way,
    whether a lock may be renewed, and whether a record that no member accepts leaves a dead letter.
    """

    lock_ms: int = 30_000
    delivery_count: int = 5
    records: int = 2_000
    renews: bool = True
    dead_letters: bool = False


class Found(NamedTuple):
    """A batch in the log. One that is not `readable` holds nothing for members."""

    first: int
    last: int
    readable: bool = True


class Acquired(NamedTuple):
    """Records that a member has now: the same number of times given out, and in one batch."""

    first: int
    last: int
    delivery_count: int


class Acknowledged(NamedTuple):
    """What a member says of the offsets `first` to `last`: one thing of all, or one of each."""

    first: int
    last: int
    types: Sequence[int]


class Dead(NamedTuple):
    """Records that no member will be given again, though none accepted them."""

    first: int
    last: int
    delivery_count: int
    rejected: bool


class StateChanges(NamedTuple):
    """What has to be written: where the group begins, what changed, how much is done with.

    `letters` are those whose dead letters are to be written after that, and then `archive`d.
    """

    start_offset: int
    batches: tuple[StateBatch, ...]
    complete_count: int
    letters: tuple[Dead, ...] = ()
