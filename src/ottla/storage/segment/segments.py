"""A log's segments in order of their base offsets."""

from bisect import bisect_right
from collections.abc import Iterator

from ottla.storage.index.transaction_index import AbortedTransaction
from ottla.storage.segment.segment import Segment


class Segments:
    """Never empty; the last one is active."""

    # Invariant: `_bases` are the segments' base offsets, strictly increasing.
    # Invariant: `active` is the last segment.

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: list[Segment]) -> None:
        assert segments
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    def floor(self, offset: int) -> int:
        """Number of the segment in whose range `offset` falls; the first for lower ones."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def add(self, segment: Segment) -> None:
        """Append a new active segment."""
        assert segment.base_offset > self._bases[-1]
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def as_list(self) -> list[Segment]:
        return list(self._segments)

    def remove_first(self, count: int) -> list[Segment]:
        """Take the `count` oldest out; at least one must stay."""
        assert count < len(self._segments)
        removed = self._segments[:count]
        del self._segments[:count]
        del self._bases[:count]
        return removed

    def remove_after(self, keep: int) -> list[Segment]:
        """Take out all but the `keep` (at least 1) oldest; the last of these is active then."""
        assert keep >= 1
        self.active = self._segments[keep - 1]
        removed = self._segments[keep:]
        del self._segments[keep:]
        del self._bases[keep:]
        return removed

    def substitute(self, old: list[Segment], new: Segment) -> None:
        """Put `new`, which has the base of the first of them, in the place of neighbours.

        They must stand here as they are given, and the active segment is none of them.
        """
        number = self._segments.index(old[0])
        assert self._segments[number : number + len(old)] == old
        assert number + len(old) < len(self._segments)
        self._segments[number : number + len(old)] = [new]
        self._bases[number : number + len(old)] = [new.base_offset]

    def replace(self, segment: Segment) -> None:
        """Put `segment` in the place of all."""
        self._segments[:] = [segment]
        self._bases[:] = [segment.base_offset]
        self.active = segment

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end), for readers of committed records."""
        found: list[AbortedTransaction] = []
        for number in range(self.floor(start), len(self._segments)):
            entries, is_complete = self._segments[number].transactions.overlapping(start, end)
            found += entries
            if is_complete:
                break
        return found
