"""The offsets that a log lost at its start or its end, with the reasons.

The history outlives the segments. Adjacent ranges with the same reason are one entry.
"""

from dataclasses import dataclass, field
from enum import IntEnum

GONE_MAX = 64
LOST_MAX = 32
EVIDENCE_MAX = 64


class StartCause(IntEnum):
    """Why offsets are below a log's start."""

    # Removed before this log had a ledger.
    UNRECORDED = 0
    RETENTION_TIME = 1
    RETENTION_BYTES = 2
    DELETE_RECORDS = 3
    # All records were dropped, because the leader had nothing in common to compare them with.
    WHOLE = 4
    # The leader's log begins later, for a reason that the leader did not give.
    LEADER = 5
    # Part of an entry with several causes whose counts are known only for the whole entry.
    SEVERAL = 6

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    StartCause.UNRECORDED: "before the ledger was kept",
    StartCause.RETENTION_TIME: "retention.ms",
    StartCause.RETENTION_BYTES: "retention.bytes",
    StartCause.DELETE_RECORDS: "delete-records",
    StartCause.WHOLE: "the replica was made anew",
    StartCause.LEADER: "the leader's log begins later",
    StartCause.SEVERAL: "several",
}


@dataclass(slots=True)
class Gone:
    """[start, end) was deleted between `first_ms` and `last_ms` (Unix times)."""

    # Invariant: start < end; the counts add up to end - start.
    start: int
    end: int
    counts: dict[StartCause, int]
    first_ms: int
    last_ms: int

    def within(self, start: int, end: int) -> dict[StartCause, int]:
        """Count, by cause, this entry's offsets that are also in [start, end)."""
        size = min(end, self.end) - max(start, self.start)
        if size <= 0:
            return {}
        if size == self.end - self.start:
            return self.counts
        return {self._only_cause(): size}

    def part(self, start: int, end: int) -> "Gone":
        """Return the part of this entry in [start, end)."""
        return Gone(
            max(start, self.start),
            min(end, self.end),
            dict(self.within(start, end)),
            self.first_ms,
            self.last_ms,
        )

    def _only_cause(self) -> StartCause:
        return next(iter(self.counts)) if len(self.counts) == 1 else StartCause.SEVERAL


@dataclass(frozen=True, slots=True)
class Loss:
    """[start, end) was in a replica and was truncated, because a leader without it was elected.

    `leader_epoch` is that leader's epoch. The leader was not in sync, or had lost committed
    records. Offsets below the present log end have since been given to other records.
    """

    start: int
    end: int
    leader_epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What decided that this replica deleted [start, end) at `at_ms`. Times in ms, -1: unknown.

    `by` is the decisive setting with its value, or the principal that deleted the records.
    `newest_ms` is the greatest timestamp in the deleted segment, `arrived_ms` when it was written.
    """

    start: int
    end: int
    at_ms: int
    by: str
    newest_ms: int = -1
    arrived_ms: int = -1


@dataclass(slots=True)
class History:
    """The history of one replica's log. `changes` counts its changes."""

    # Invariant: entries of `gone` are ascending and do not overlap.
    gone: list[Gone] = field(default_factory=list)
    lost: list[Loss] = field(default_factory=list)
    # For missing offsets below this one the reason is unknown: they are older than the ledger.
    unrecorded_below: int = 0
    # The evidence of the latest deletions of this replica, the oldest first.
    evidence: list[Evidence] = field(default_factory=list)
    # Below this offset, compaction of this replica, or of the one that it was copied from, may have
    # made holes.
    compacted_below: int = 0
    next_pass: int = 1
    changes: int = 0

    def delete(self, start: int, end: int, cause: StartCause, now_ms: int) -> None:
        """Note that [start, end) was deleted for `cause`; this replaces earlier notes."""
        for one in self.gone:
            if one.start <= start and end <= one.end and one.counts.keys() == {cause}:
                return
        if start < end:
            self._put(Gone(start, end, {cause: end - start}, now_ms, now_ms))

    def fill(self, start: int, end: int, cause: StartCause, now_ms: int) -> None:
        """Note `cause` for the offsets of [start, end) without a note."""
        for first, last in self._uncovered(start, end):
            self.delete(first, last, cause, now_ms)

    def learn(self, entry: Gone) -> None:
        """Add an entry of the leader's history."""
        for one in self.gone:
            if (one.start, one.end) == (entry.start, entry.end) and one.counts == entry.counts:
                return
        self._put(entry.part(entry.start, entry.end))

    def prove(self, evidence: Evidence) -> None:
        """Note what decided a deletion, once; the oldest evidence goes if there is too much."""
        if evidence.start >= evidence.end:
            return
        known = [
            one for one in self.evidence if (one.start, one.end) != (evidence.start, evidence.end)
        ]
        self.evidence = [*known, evidence][-EVIDENCE_MAX:]
        self.changes += 1

    def lose(self, loss: Loss) -> None:
        """Note a loss, once."""
        if loss.start >= loss.end or loss in self.lost:
            return
        self.lost.append(loss)
        del self.lost[:-LOST_MAX]
        self.changes += 1

    def compacted_to(self, end: int) -> None:
        """Note that passes of the cleaner may have made holes below `end`."""
        if end > self.compacted_below:
            self.compacted_below = end
            self.changes += 1

    def begin_pass(self) -> int:
        """Return the number of a new pass; the number stays unused if the pass is interrupted."""
        number, self.next_pass = self.next_pass, self.next_pass + 1
        self.changes += 1
        return number

    def entries(self, start: int, end: int) -> list[Gone]:
        """Return the parts of entries in [start, end)."""
        return [one.part(start, end) for one in self.gone if one.start < end and start < one.end]

    def copy(self) -> "History":
        """Return a copy that does not change."""
        return History(
            list(self.gone),
            list(self.lost),
            self.unrecorded_below,
            list(self.evidence),
            self.compacted_below,
            self.next_pass,
            self.changes,
        )

    def _uncovered(self, start: int, end: int) -> list[tuple[int, int]]:
        found, position = [], start
        for one in self.entries(start, end):
            if one.start > position:
                found.append((position, one.start))
            position = one.end
        if position < end:
            found.append((position, end))
        return found

    def _put(self, new: Gone) -> None:
        kept = []
        for one in self.gone:
            if one.end <= new.start or one.start >= new.end:
                kept.append(one)
                continue
            if one.start < new.start:
                kept.append(one.part(one.start, new.start))
            if one.end > new.end:
                kept.append(one.part(new.end, one.end))
        kept.append(new)
        kept.sort(key=lambda one: one.start)
        self.gone = _merged(kept)
        self.changes += 1


def _merged(entries: list[Gone]) -> list[Gone]:
    """Join adjacent entries of the same causes, and the oldest ones if there are too many."""
    merged: list[Gone] = []
    for one in entries:
        before = merged[-1] if merged else None
        if (
            before is not None
            and before.end == one.start
            and before.counts.keys() == one.counts.keys()
        ):
            merged[-1] = _joined(before, one)
        else:
            merged.append(one)
    while len(merged) > GONE_MAX and merged[0].end == merged[1].start:
        merged[:2] = [_joined(merged[0], merged[1])]
    return merged


def _joined(before: Gone, after: Gone) -> Gone:
    counts = dict(before.counts)
    for cause, count in after.counts.items():
        counts[cause] = counts.get(cause, 0) + count
    return Gone(
        before.start,
        after.end,
        counts,
        min(before.first_ms, after.first_ms),
        max(before.last_ms, after.last_ms),
    )
