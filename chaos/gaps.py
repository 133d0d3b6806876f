"""How long writers waited: per fault, the longest time without an acknowledgement."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from verify.history.operation import Operation

_NOTABLE_S = 0.02


@dataclass(frozen=True, slots=True)
class Moment:
    """One fault from its making until all replicas were in sync again, in monotonic seconds."""

    name: str
    description: str
    begin_s: float
    healed_s: float
    end_s: float


class Waits:
    """For each moment the longest gap in seconds between acknowledgements.

    Of writers that send to each partition all the time. The moment of a gap is the last one that
    was made before the gap's end.
    """

    def __init__(self, moments: Sequence[Moment]) -> None:
        self._begins_s = [moment.begin_s for moment in moments]
        # Nothing came through from any writer, to some partition.
        self.of_partitions_s = [0.0] * len(moments)
        # Nothing came through from some writer, to some partition.
        self.of_writers_s = [0.0] * len(moments)

    def take(self, operations: Iterable[Operation], writers: Collection[str]) -> None:
        """Everything done to one partition."""
        ends_s: dict[str, list[float]] = {writer: [] for writer in writers}
        for operation in operations:
            if operation.outcome == "ok" and operation.process in ends_s and operation.steps:
                ends_s[operation.process].append(operation.end_s)
        for found in ends_s.values():
            self._note(found, self.of_writers_s)
        self._note([end_s for found in ends_s.values() for end_s in found], self.of_partitions_s)

    def _note(self, ends_s: list[float], longest_s: list[float]) -> None:
        for earlier_s, later_s in pairwise(sorted(ends_s)):
            made = bisect_left(self._begins_s, later_s) - 1
            if made >= 0 and later_s - earlier_s > _NOTABLE_S:
                longest_s[made] = max(longest_s[made], later_s - earlier_s)
