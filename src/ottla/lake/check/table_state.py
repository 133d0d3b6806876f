"""Reads a consistent state of a table (chain, log, files) while other commits are made.

The parts are read one after the other, and a commit in between may make them contradict each other.
Such a contradiction disappears when the table is read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.lake.check.files import LogBounds, exists
from ottla.lake.check.report import Verification
from ottla.lake.model.chain import TableStanding
from ottla.lake.model.live import left_out, letters_after, live_after, versions_without_files
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import TopicBounds
from ottla.lake.tables.data_files import files_present
from ottla.lake.tables.markers import TableCheckpoints
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import Agreement, LakeTable, overridden_by, without_overridden

_TRIES = 5


@dataclass(frozen=True, slots=True)
class ComparedTopic:
    """The topic that a table is compared with. Can be pickled."""

    bootstrap: Bootstrap
    described: TopicBounds

    @property
    def has_holes(self) -> bool:
        """Return whether offsets may lack records, which compaction or the ledger explains."""
        return self.described.compacted or self.described.has_ledger


@dataclass(frozen=True, slots=True)
class TableAsRead:
    """A table's state as it was read, and a report with the problems of its chain and log."""

    table: LakeTable
    report: Verification
    manifests: Sequence[Manifest]
    live: list[DataFile]
    agreement: Agreement

    @property
    def bounds(self) -> LogBounds:
        """Return the column bounds that the format's log has for each file."""
        return LogBounds(self.table.format.capitalize(), self.agreement.bounds)

    def has_lost_files(self) -> bool:
        """Return whether later commits removed files of this state that were then deleted."""
        newest = self.manifests[-1].version if self.manifests else 0
        # Problems of the chain are in the report already, so they are ignored here.
        later = (link.manifest for link in self.table.links())
        return any(
            not exists(self.table.store, file.path)
            for manifest in later
            if manifest is not None and manifest.version > newest
            for file in (
                *manifest.removed,
                *manifest.removed_hidden,
                *manifest.removed_dead_letters,
            )
        )


def read_table(target: str, store_options: Mapping[str, str] | None) -> TableAsRead:
    """Read the table; if it has problems, read it again until it has no new ones.

    Raises OttlaError if there is no table.
    """
    before: set[str] = set()
    for tried in range(1, _TRIES + 1):
        found = _read_once(existing_table(target, store_options))
        problems = set(found.report.problems)
        if problems <= before or tried == _TRIES:
            return found
        before = problems
    raise AssertionError("the last try returns")


def _read_once(table: LakeTable) -> TableAsRead:
    report = Verification("")
    # List files before reading manifests: if a load commits in between, its files have a manifest.
    present = files_present(table.store)
    chain, live = _read_chain(table, report)
    agreement = table.audit(chain)
    report.problems += agreement.problems
    report.remarks += agreement.remarks
    manifests = [manifest for manifest, _ in chain]
    _find_strays(table, present, manifests, agreement, report)
    report.expired = versions_without_files(
        manifests, {path for paths in present for path in paths}
    )
    return TableAsRead(table, report, manifests, live, agreement)


def _read_chain(
    table: LakeTable, report: Verification
) -> tuple[list[tuple[Manifest, str | None]], list[DataFile]]:
    """Return the readable manifests with their digests, and the live files after the last manifest.

    Adds problems of the chain to `report`.
    """
    chain: list[tuple[Manifest, str | None]] = []
    live: dict[str, DataFile] = {}
    letters: dict[str, DataFile] = {}
    standings: dict[int, TableStanding] = {}
    for link in without_overridden(table.links()):
        report.problems += link.problems
        if link.manifest is None:
            continue
        standings[link.after.version] = link.after
        chain.append((link.manifest, link.after.digest))
        report.problems += [
            f"the manifest {link.name}: {problem}"
            for problem in (
                *live_after(live, link.manifest),
                *letters_after(letters, link.manifest),
            )
        ]
        kind = link.manifest.kind
        if kind in MOVES_POSITIONS:
            report.loads += 1
        else:
            report.other_commits[kind] = report.other_commits.get(kind, 0) + 1
        if kind == "replacement":
            report.read_again += link.manifest.ledgers
        for ledger in link.manifest.ledgers if kind in MOVES_POSITIONS else ():
            before = report.ledgers.get(ledger.partition)
            if before is None:
                report.ledgers[ledger.partition] = ledger
            elif before.end == ledger.start:
                report.ledgers[ledger.partition] = before.followed_by(ledger)
    report.skipped = left_out(manifest for manifest, _ in chain)
    checkpoints = TableCheckpoints(table.store)
    report.problems += checkpoints.problems(standings)
    report.overridden += overridden_by(manifest for manifest, _ in chain)
    return chain, list(live.values())


def _find_strays(
    table: LakeTable,
    present: tuple[list[str], list[str]],
    manifests: Sequence[Manifest],
    agreement: Agreement,
    report: Verification,
) -> None:
    """Report files in the table's folders that no commit names."""
    named = {
        file.path for manifest in manifests for file in (*manifest.files, *manifest.dead_letters)
    }
    named |= agreement.others.known
    foreign, uncounted = ([path for path in paths if path not in named] for paths in present)
    if agreement.is_shared:
        foreign = []  # In a shared table, other programs have their own files in these folders.
    elif table.format != "parquet":
        # Readers of this format only read files in the log, so unused files do no harm.
        foreign, uncounted = [], sorted((*foreign, *uncounted))
    report.problems += [
        f"{path} does not belong to the table: no load names it; move it elsewhere"
        for path in foreign
    ]
    report.uncounted += uncounted
