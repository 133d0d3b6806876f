"""The findings of a verification's tasks, and the report that sums them up."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.lake.check.differences import Differences
from ottla.lake.model.row_hash import hash_text
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable


@dataclass(slots=True)
class CheckFindings:
    """The findings of one task. Its four lists of problems are in the order of the report."""

    rows: int = 0
    hash: int = 0
    dead_letters: int = 0
    compared: int = 0
    only_in_lake: int = 0
    # Ledgers of the loaded ranges, from the records that the topic still holds.
    ledgers: list[PartitionLedger] = field(default_factory=list)
    # Files that other programs replaced by files with the same rows.
    replaced: list[str] = field(default_factory=list)
    of_dead_letters: list[str] = field(default_factory=list)
    of_files: list[str] = field(default_factory=list)
    of_topic: list[str] = field(default_factory=list)
    of_typed: list[str] = field(default_factory=list)
    # By partition. Only for a bucket of a changelog table, which has rows of all partitions.
    differences: dict[int, Differences] = field(default_factory=dict)


@dataclass(slots=True)
class Verification:
    """The report of `verify`. The table is proven if it has a commit and `problems` is empty."""

    topic: str
    loads: int = 0
    # The number of commits by kind, for kinds that load nothing, such as compactions.
    other_commits: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    hash: str = hash_text(0)
    # Rows that were found equal in the table and the topic.
    compared: int = 0
    # Rows that only the lake still holds: retention or compaction removed them from the topic.
    only_in_lake: int = 0
    ledgers: dict[int, PartitionLedger] = field(default_factory=dict)
    # The brokers' ledger of all loaded offsets, by partition. Apache Kafka has no such ledger.
    reported: dict[int, LedgerTotals] = field(default_factory=dict)
    # Ranges that the manifests record as unreadable, and that no replacement has read since.
    skipped: list[Unreadable] = field(default_factory=list)
    # Ledgers of the ranges that replacements have read again.
    read_again: list[PartitionLedger] = field(default_factory=list)
    # Records that could not be decoded; they are in the files of dead letters.
    dead_letters: int = 0
    # Files that were never committed. The next load removes them.
    uncounted: list[str] = field(default_factory=list)
    # First and last of the version ranges that cannot be read because files have expired.
    expired: list[tuple[int, int]] = field(default_factory=list)
    # Notes that are not problems.
    remarks: list[str] = field(default_factory=list)
    # Problems of manifests that an operator overrode, each with the load that recorded it.
    overridden: list[str] = field(default_factory=list)
    # Files that other programs replaced by files with the same rows, for example by compaction.
    replaced: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        return not self.problems and not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Return whether the table has no readable commit."""
        return not self.loads and not self.other_commits


def add_findings(report: Verification, findings: Sequence[CheckFindings]) -> None:
    """Add the tasks' findings to the report, and compare their ledgers with the loads' ledgers."""
    for found in findings:
        report.rows += found.rows
        report.dead_letters += found.dead_letters
        report.compared += found.compared
        report.only_in_lake += found.only_in_lake
        report.replaced += found.replaced
    report.hash = hash_text(sum(found.hash for found in findings))
    report.problems += [line for found in findings for line in found.of_dead_letters]
    report.problems += [line for found in findings for line in found.of_files]
    report.problems += [line for found in findings for line in found.of_topic]
    report.problems += [line for found in findings for line in found.of_typed]
    held = [ledger for found in findings for ledger in found.ledgers]
    report.problems += _more_than_counted(report.topic, report.ledgers, held)


def _more_than_counted(
    topic: str, counted: Mapping[int, PartitionLedger], held: Iterable[PartitionLedger]
) -> Iterator[str]:
    """Yield a problem for each kind of record of which the topic has more than the loads counted.

    Compaction and retention only remove records, so the ledgers of the loads (`counted`) must be
    wrong. `held` are the ledgers of the verification. Records that were unreadable for the loads
    may be readable now, so their number is allowed for.
    """
    sums: dict[int, Counter[str]] = {}
    for ledger in held:
        sums.setdefault(ledger.partition, Counter()).update(_terms(ledger))
    for partition, terms in sorted(sums.items()):
        of_loads = counted.get(partition)
        if of_loads is None or not of_loads.balances:
            continue  # Another check reports this.
        for term, count in terms.items():
            before = _terms(of_loads)[term]
            if count > before + of_loads.unreadable:
                yield (
                    f"{topic}-{partition}: the topic has {count} {term} between the "
                    f"offsets {of_loads.start} and {of_loads.end}, and the ledgers of the loads "
                    f"count {before}"
                )


def _terms(ledger: PartitionLedger) -> dict[str, int]:
    return {
        "control records": ledger.control,
        "records of aborted transactions": ledger.aborted,
        "records without a key": ledger.keyless,
    }


def is_among(one: Unreadable, known: Sequence[Unreadable]) -> bool:
    """Return whether all offsets of `one` are in `known`, whose ranges do not overlap."""
    before = sum(
        max(0, min(one.end, other.end) - max(one.start, other.start))
        for other in known
        if other.partition == one.partition
    )
    return before == one.end - one.start
