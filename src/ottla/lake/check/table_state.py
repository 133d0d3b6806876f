"""Reads a consistent state of a table (chain, log, files) while other commits go on.

Loads, compactions and expiries go on meanwhile, and each part is read at another moment. A
contradiction that only arose because of a commit between two reads disappears when the table is
read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.lake.check.chain import find_strays, read_chain
from ottla.lake.check.report import Verification
from ottla.lake.model.live import versions_without_files
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.tables.data_files import files_present
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import Agreement, LakeTable

_TRIES = 5


@dataclass(frozen=True, slots=True)
class TableAsRead:
    """A table as it was read, and a report with the problems of its chain and its log."""

    table: LakeTable
    report: Verification
    manifests: Sequence[Manifest]
    live: list[DataFile]
    agreement: Agreement

    def has_lost_files(self) -> bool:
        """Return whether files that were live here were since removed by commits and deleted."""
        newest = self.manifests[-1].version if self.manifests else 0
        # A damaged chain is read too: its problems are in the report.
        later = (link.manifest for link in self.table.links())
        return any(
            not _exists(self.table, file)
            for manifest in later
            if manifest is not None and manifest.version > newest
            for file in (
                *manifest.removed,
                *manifest.removed_hidden,
                *manifest.removed_dead_letters,
            )
        )


def read_table(target: str, store_options: Mapping[str, str] | None) -> TableAsRead:
    """Read the table, and read it again on a problem until the problem was seen twice.

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
    # Read before the manifests: if a load ends meanwhile, its files then have a manifest.
    present = files_present(table.store)
    chain, live = read_chain(table, report)
    agreement = table.audit(chain)
    report.problems += agreement.problems
    report.remarks += agreement.remarks
    manifests = [manifest for manifest, _ in chain]
    find_strays(table, present, manifests, agreement, report)
    report.expired = versions_without_files(
        manifests, {path for paths in present for path in paths}
    )
    return TableAsRead(table, report, manifests, live, agreement)


def _exists(table: LakeTable, file: DataFile) -> bool:
    try:
        table.store.size(file.path)
    except FileNotFoundError:
        return False
    return True
