"""The report of a table's verification."""

from dataclasses import dataclass, field

from ottla.lake.model.row_hash import hash_text
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable


@dataclass(slots=True)
class Verification:
    """The report. The table is proven if it has a commit and `problems` is empty."""

    topic: str
    loads: int = 0
    # The number of commits of each other kind, which load nothing.
    other_commits: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    hash: str = hash_text(0)
    # Rows whose offsets the topic still holds; they were compared one by one.
    compared: int = 0
    # Rows that only the lake still holds: retention or compaction removed them from the topic.
    only_in_lake: int = 0
    ledgers: dict[int, PartitionLedger] = field(default_factory=dict)
    # The brokers' own ledger of all that was loaded, by partition; Apache Kafka has none.
    told: dict[int, LedgerTotals] = field(default_factory=dict)
    # Ranges that the manifests record as unreadable and that were not read since.
    skipped: list[Unreadable] = field(default_factory=list)
    # Ledgers of ranges that replacements read again, in place of the loads' ledgers.
    read_again: list[PartitionLedger] = field(default_factory=list)
    # Records that could not be decoded; they are in the files of dead letters.
    dead_letters: int = 0
    # Files of tasks or loads that were never committed; the next load removes them.
    uncounted: list[str] = field(default_factory=list)
    # First and last of the version ranges that cannot be read because files have expired.
    expired: list[tuple[int, int]] = field(default_factory=list)
    # Notes: not problems, but worth reporting.
    remarks: list[str] = field(default_factory=list)
    # Problems of manifests that an operator overrode, with the load that was built on them.
    overridden: list[str] = field(default_factory=list)
    # Files that other programs replaced by files with the same rows, for example by compaction.
    replaced: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        return not self.problems and not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Return whether no commit of the table is known."""
        return not self.loads and not self.other_commits
