"""What the verification of a table found."""

from dataclasses import dataclass, field

from ottla.lake.row_hash import hash_text
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable


@dataclass(slots=True)
class Verification:
    """What was found. The table is proven where it has a commit, and `problems` is empty."""

    topic: str
    loads: int = 0
    # How many commits of each other kind there are: they load nothing.
    other_commits: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    hash: str = hash_text(0)
    # Rows whose offsets the topic still holds, compared one with the other.
    compared: int = 0
    # Rows that only the lake holds by now: retention or compaction took them from the topic.
    only_in_lake: int = 0
    ledgers: dict[int, PartitionLedger] = field(default_factory=dict)
    # What the brokers' own ledger says of all that was loaded, by partition; none of Kafka's.
    told: dict[int, LedgerTotals] = field(default_factory=dict)
    # What was left out as unreadable, by the manifests, and not read again since.
    skipped: list[Unreadable] = field(default_factory=list)
    # Accounts of ranges that replacements read again, in place of what the ledgers say of them.
    read_again: list[PartitionLedger] = field(default_factory=list)
    # Records that could not be decoded, which stand in the files of dead letters.
    dead_letters: int = 0
    # Files that tasks or loads left which did not count; the next load removes them.
    uncounted: list[str] = field(default_factory=list)
    # First and last of versions whose files have expired, so that they can't be read any more.
    expired: list[tuple[int, int]] = field(default_factory=list)
    # What is no problem, and worth to be said.
    remarks: list[str] = field(default_factory=list)
    # Problems of manifests that a load was built on by an operator's word, with that load.
    overridden: list[str] = field(default_factory=list)
    # What other programs replaced by other files with the same rows, as when they compact.
    replaced: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        return not self.problems and not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether no commit of the table is known."""
        return not self.loads and not self.other_commits
