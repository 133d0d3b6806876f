"""How long writers waited: per fault, the longest time a partition acknowledged nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ottla.testing.history.operation import Operation


@dataclass(frozen=True, slots=True)
class Moment:
    """One fault from its making until all replicas were in sync again, in monotonic seconds."""

    name: str
    told: str
    begin_s: float
    healed_s: float
    end_s: float


def longest_gaps(operations: Iterable[Operation], moments: Iterable[Moment]) -> list[float]:
    """For each moment the longest gap in seconds between acknowledgements of one partition.

    Gaps count that lie in the moment at least in part: one that began just before it is its own.
    """
    ends: dict[str, list[float]] = {}
    for operation in operations:
        if operation.outcome == "ok":
            for step in operation.sends:
                ends.setdefault(step.partition, []).append(operation.end_s)
    gaps = [
        (earlier, later)
        for found in ends.values()
        for earlier, later in pairwise(sorted(found))
        if later - earlier > 0.05
    ]
    return [
        max(
            (later - earlier for earlier, later in gaps if _meets(earlier, later, moment)),
            default=0.0,
        )
        for moment in moments
    ]


def _meets(earlier_s: float, later_s: float, moment: Moment) -> bool:
    return earlier_s < moment.end_s and later_s > moment.begin_s
