"""The account of one range of a partition: the fate of each offset.

    end - start =
        loaded + control + aborted + compacted + deleted + unreadable + absent + dead_letters
        + keyless + unexplained

Every term but the last has its own evidence: decoded records, headers of control batches, abort
markers, headers on both sides of a gap, the log start offset, and batches that were fetched twice
and could not be read. `absent` offsets are gaps that neither the broker's ledger nor the cleanup
policy explains; they are counted only if the log shows that it was compacted once. `dead_letters`
are records whose values could not be decoded, and which were kept apart from the rows. `keyless`
records have no key, so a changelog table has no place for them. The remaining offsets are
`unexplained`; a correct load has none.
"""

from dataclasses import dataclass, field, replace

from ottla.base.errors import ErrorCode, OttlaError


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """The totals of the broker's own ledger for the range, read after the records.

    Loaded records may have been compacted or deleted by then.
    """

    data: int
    control: int
    aborted: int
    compacted: int
    deleted: int
    lost: int
    unexplained: int

    def and_of(self, later: "LedgerTotals") -> "LedgerTotals":
        """Return the sum of both ranges' totals."""
        return LedgerTotals(
            self.data + later.data,
            self.control + later.control,
            self.aborted + later.aborted,
            self.compacted + later.compacted,
            self.deleted + later.deleted,
            self.lost + later.lost,
            self.unexplained + later.unexplained,
        )


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Offsets [start, end) of a partition that could not be read, and why."""

    # Invariant: start < end.
    partition: int
    start: int
    end: int
    cause: str


@dataclass(frozen=True, slots=True)
class PartitionLedger:
    """Counts of offsets in [start, end) of one partition."""

    # Invariant: 0 <= start <= end; every count >= 0.
    partition: int
    start: int
    end: int
    loaded: int = 0
    control: int = 0
    aborted: int = 0
    compacted: int = 0
    deleted: int = 0
    unreadable: int = 0
    absent: int = 0
    dead_letters: int = 0
    keyless: int = 0
    # From a broker that keeps a ledger; None for Apache Kafka.
    reported: LedgerTotals | None = None

    @property
    def accounted(self) -> int:
        gone = self.compacted + self.deleted + self.unreadable + self.absent
        left_out = self.dead_letters + self.keyless
        return self.loaded + left_out + self.control + self.aborted + gone

    @property
    def unexplained(self) -> int:
        """Offsets that no evidence accounts for; negative if some were counted twice."""
        return self.end - self.start - self.accounted

    @property
    def balances(self) -> bool:
        return self.unexplained == 0

    def followed_by(self, later: "PartitionLedger") -> "PartitionLedger":
        """Return the account of both ranges as one. `later` starts where this one ends."""
        assert (self.partition, self.end) == (later.partition, later.start)
        return replace(
            self,
            end=later.end,
            loaded=self.loaded + later.loaded,
            control=self.control + later.control,
            aborted=self.aborted + later.aborted,
            compacted=self.compacted + later.compacted,
            deleted=self.deleted + later.deleted,
            unreadable=self.unreadable + later.unreadable,
            absent=self.absent + later.absent,
            dead_letters=self.dead_letters + later.dead_letters,
            keyless=self.keyless + later.keyless,
            reported=self.reported.and_of(later.reported)
            if self.reported and later.reported
            else None,
        )

    def settled(self, reported: LedgerTotals) -> "PartitionLedger":
        """Return the account after the broker's ledger has explained the holes.

        Holes have been counted as compacted so far. Those that the broker's ledger attributes
        neither to compaction nor to a deletion become unexplained.
        """
        explained = reported.compacted + max(0, reported.deleted - self.deleted)
        return replace(self, compacted=min(self.compacted, explained), reported=reported)


@dataclass(slots=True)
class RangeAccount:
    """Counts a range of a partition while its batches are passed in, in order of offset.

    `gaps_are_compaction` says that the topic's cleanup policy may remove single records, or that
    the broker keeps a ledger that is asked later (`PartitionLedger.settled`). Only then are gaps
    counted as compacted. Otherwise they are unexplained, unless the log shows that it was compacted
    once (`ledger_with_gaps`).
    """

    # Invariant: start <= position <= end; every offset below `position` has been counted once, or
    # stays unexplained.
    partition: int
    start: int
    end: int
    gaps_are_compaction: bool
    position: int = field(init=False)
    loaded: int = 0
    control: int = 0
    aborted: int = 0
    compacted: int = 0
    gaps: int = 0  # Offsets between two batches or inside one, where no policy explains them.
    deleted: int = 0
    # The skipped ranges, in order of offset.
    skipped: list[Unreadable] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end
        self.position = self.start

    def log_starts_at(self, log_start_offset: int) -> None:
        """Count all offsets below the log start offset as deleted."""
        deleted = min(log_start_offset, self.end) - self.position
        if deleted > 0:
            self.deleted += deleted
            self.position += deleted

    def records(self, base_offset: int, last_offset: int, loaded: int) -> None:
        """Count a batch of data with `loaded` records in the range."""
        spanned = self._span(base_offset, last_offset)
        if loaded > spanned:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the batch at offset {base_offset} of partition {self.partition} holds {loaded} "
                f"records for {spanned} offsets; read the partition with `ottla log dump`",
            )
        self.loaded += loaded
        # A batch keeps its span when compaction removes records from it; the header has both
        # numbers.
        self._gap(spanned - loaded)

    def control_batch(self, base_offset: int, last_offset: int) -> None:
        self.control += self._span(base_offset, last_offset)

    def aborted_batch(self, base_offset: int, last_offset: int) -> None:
        self.aborted += self._span(base_offset, last_offset)

    def unreadable_batch(self, base_offset: int, last_offset: int, cause: str) -> None:
        """Count unreadable offsets: those of one batch, or all up to the next readable batch."""
        spanned = self._span(base_offset, last_offset)
        if spanned:
            first = self.position - spanned
            self.skipped.append(Unreadable(self.partition, first, self.position, cause))

    @property
    def unreadable(self) -> int:
        return sum(one.end - one.start for one in self.skipped)

    def ledger(self) -> PartitionLedger:
        return PartitionLedger(
            self.partition, self.start, self.end,
            self.loaded, self.control, self.aborted, self.compacted, self.deleted,
            self.unreadable,
        )  # fmt: skip

    def ledger_with_gaps(self) -> PartitionLedger:
        """Return the account with all gaps as `absent`.

        The caller then looks for evidence in the log.
        """
        return replace(self.ledger(), absent=self.gaps)

    def _gap(self, count: int) -> None:
        if self.gaps_are_compaction:
            self.compacted += count
        else:
            self.gaps += count

    def _span(self, base_offset: int, last_offset: int) -> int:
        """Advance over a batch; return the number of its offsets in the range."""
        first = max(base_offset, self.position)
        after = min(last_offset + 1, self.end)
        self._gap(max(0, min(first, self.end) - self.position))
        self.position = max(self.position, min(last_offset + 1, self.end))
        return max(0, after - first)
