"""The findings of one task of a verification."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.lake.check.differences import Differences
from ottla.ledger.partition import Unreadable


@dataclass(slots=True)
class CheckFindings:
    """The findings of one task. Problems are in four lists, in the order of the report."""

    rows: int = 0
    hash: int = 0
    dead_letters: int = 0
    compared: int = 0
    only_in_lake: int = 0
    # Ledgers of the records that the topic still holds in the range.
    partition: int = 0
    control: int = 0
    aborted: int = 0
    of_dead_letters: list[str] = field(default_factory=list)
    of_files: list[str] = field(default_factory=list)
    of_topic: list[str] = field(default_factory=list)
    of_typed: list[str] = field(default_factory=list)
    # By partition; used for a bucket of a changelog, which has rows of all partitions.
    differences: dict[int, Differences] = field(default_factory=dict)


def is_among(one: Unreadable, known: Sequence[Unreadable]) -> bool:
    """Return whether all offsets of `one` are in `known`, where no offset occurs twice."""
    before = sum(
        max(0, min(one.end, other.end) - max(one.start, other.start))
        for other in known
        if other.partition == one.partition
    )
    return before == one.end - one.start
