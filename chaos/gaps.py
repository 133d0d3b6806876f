"""How long writers waited: per fault, the longest time a partition acknowledged nothing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

from ottla.testing.history.operation import Operation

_NOTABLE_S = 0.02


@dataclass(frozen=True, slots=True)
class Moment:
    """One fault from its making until all replicas were in sync again, in monotonic seconds."""

    name: str
    told: str
    begin_s: float
    healed_s: float
    end_s: float


def longest_gaps(
    operations: Iterable[Operation], moments: Iterable[Moment], writers: Collection[str]
) -> list[float]:
    """For each moment the longest gap in seconds between acknowledgements of one partition.

    Of these writers, which send to each partition all the time. The moment of a gap is the last
    one that was made before the gap's end.
    """
    ends: dict[str, list[float]] = {}
    for operation in operations:
        if operation.outcome == "ok" and operation.process in writers:
            for step in operation.sends:
                ends.setdefault(step.partition, []).append(operation.end_s)
    longest = dict.fromkeys(moments, 0.0)
    for found in ends.values():
        for earlier_s, later_s in pairwise(sorted(found)):
            made = [moment for moment in longest if moment.begin_s < later_s]
            if made and later_s - earlier_s > _NOTABLE_S:
                longest[made[-1]] = max(longest[made[-1]], later_s - earlier_s)
    return list(longest.values())
