"""The findings of a verification's tasks, and the report that they make."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.lake.check.differences import Differences
from ottla.lake.model.row_hash import hash_text
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable


@dataclass(slots=True)
class CheckFindings:
    """The findings of one task. Problems are in four lists, in the order of the report."""

    rows: int = 0
    hash: int = 0
    dead_letters: int = 0
    compared: int = 0
    only_in_lake: int = 0
    # Ledgers of the records that the topic still holds of what was loaded.
    ledgers: list[PartitionLedger] = field(default_factory=list)
    # Files that other programs replaced by files with the same rows.
    replaced: list[str] = field(default_factory=list)
    of_dead_letters: list[str] = field(default_factory=list)
    of_files: list[str] = field(default_factory=list)
    of_topic: list[str] = field(default_factory=list)
    of_typed: list[str] = field(default_factory=list)
    # By partition; used for a bucket of a changelog, which has rows of all partitions.
    differences: dict[int, Differences] = field(default_factory=dict)


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
    reported: dict[int, LedgerTotals] = field(default_factory=dict)
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


def add_findings(report: Verification, findings: Sequence[CheckFindings]) -> None:
    """Add the tasks' findings to the report, and compare their ledgers with those of the loads."""
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
    """Yield the terms of which the topic now holds more than its loads have counted.

    Compaction and retention only remove records, so this contradicts the ledgers of the loads,
    `counted`. `held` are ledgers of the ranges that were read again. Records that could not be read
    then may be readable now.
    """
    sums: dict[int, Counter[str]] = {}
    for ledger in held:
        sums.setdefault(ledger.partition, Counter()).update(_terms(ledger))
    for partition, terms in sorted(sums.items()):
        of_loads = counted.get(partition)
        if of_loads is None or not of_loads.balances:
            continue  # This is reported as a problem of its own.
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
    """Return whether all offsets of `one` are in `known`, where no offset occurs twice."""
    before = sum(
        max(0, min(one.end, other.end) - max(one.start, other.start))
        for other in known
        if other.partition == one.partition
    )
    return before == one.end - one.start
