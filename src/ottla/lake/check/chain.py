"""Reads the commits of a table, its live files, and strays: files that no commit names."""

from collections.abc import Sequence

from ottla.lake.check.report import Verification
from ottla.lake.model.chain import TableStanding
from ottla.lake.model.live import left_out, letters_after, live_after
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.tables.markers import TableCheckpoints
from ottla.lake.tables.table import Agreement, LakeTable, overridden_by, without_overridden


def read_chain(
    table: LakeTable, report: Verification
) -> tuple[list[tuple[Manifest, str | None]], list[DataFile]]:
    """Return the readable manifests with digests, and the live files after the last one.

    Reports problems of the chain.
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


def find_strays(
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
        foreign = []  # In a shared table other programs have their own files there.
    elif table.format != "parquet":
        # Readers of this format use the log, so other programs may leave unused files there.
        foreign, uncounted = [], sorted((*foreign, *uncounted))
    report.problems += [
        f"{path} does not belong to the table: no load names it; move it elsewhere"
        for path in foreign
    ]
    report.uncounted += uncounted
