"""What a verification goes by: the chain, the log, and the files there, beside other commits.

Loads, compactions and expiries go on meanwhile, and each part is read at another moment. What
contradicts itself only since a commit came between two parts is gone once they are read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.lake.folder.files_present import files_present
from ottla.lake.log.live import versions_without_files
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import Agreement, LakeTable
from ottla.lake.verifying.chain import find_strays, read_chain
from ottla.lake.verifying.report import Verification

_TRIES = 5


@dataclass(frozen=True, slots=True)
class TableAsRead:
    """A table as it was read, and a report that has what is wrong with its chain and its log."""

    table: LakeTable
    report: Verification
    manifests: Sequence[Manifest]
    live: list[DataFile]
    agreement: Agreement

    def has_lost_files(self) -> bool:
        """Whether files that counted here were removed by later commits, and deleted since."""
        newest = self.manifests[-1].version if self.manifests else 0
        # Of a damaged chain, too: its problems are in the report.
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
    """Read the table; again where something is wrong, until that was seen twice.

    Raises OttlaError where there is no table.
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
    # Before the manifests: a load that ends meanwhile has a manifest for its files.
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
