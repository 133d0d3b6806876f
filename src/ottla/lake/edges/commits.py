"""Summarizes the commits of a table, one line each. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ottla.base.quantities import counted, iso
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.ledger.partition import PartitionLedger

TERMS = (
    "loaded",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "unreadable",
    "absent",
    "dead_letters",
    "keyless",
)


@dataclass(frozen=True, slots=True)
class Commit:
    """What one commit did, with its remarks."""

    version: int
    kind: str
    created_ms: int
    rows: int
    files: int
    size_bytes: int
    removed_files: int
    total_rows: int
    topic_id: str | None
    writer_epoch: int
    on_record: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """Return a row for a table of commits."""
        return {**asdict(self), "time": iso(self.created_ms)}


def commits(manifests: Iterable[Manifest]) -> list[Commit]:
    """Return one summary for each manifest, in order."""
    return [
        Commit(
            version=one.version,
            kind=one.kind,
            created_ms=one.created_ms,
            rows=one.rows,
            files=len(one.files),
            size_bytes=bytes_of_files(one.files),
            removed_files=len(one.removed),
            total_rows=one.total_rows,
            topic_id=one.topic_id,
            writer_epoch=one.writer_epoch,
            on_record=tuple(on_record(one)),
        )
        for one in manifests
    ]


def on_record(manifest: Manifest) -> list[str]:
    """Return remarks on everything in a commit that is not plain loading."""
    lines = [
        f"{counted(count, 'offset')} of partition {partition} lost, which was accepted"
        for partition, count in manifest.accepted_loss.items()
    ]
    lines += [f"overridden: {problem}" for problem in manifest.overridden]
    unreadable = sum(one.end - one.start for one in manifest.skipped)
    if unreadable:
        lines.append(f"{counted(unreadable, 'offset')} left out as unreadable")
    dead = sum(file.rows for file in manifest.dead_letters)
    if dead:
        lines.append(counted(dead, "dead letter"))
    lines += [f"columns: {change.what}" for change in manifest.schema_changes]
    if manifest.kind == "epoch":
        lines.append(f"a writer started with epoch {manifest.writer_epoch}")
    return lines


def bytes_of_files(files: Iterable[DataFile]) -> int:
    """Return how many bytes the files take."""
    return sum(file.size_bytes for file in files)


def terms_of(ledgers: Sequence[PartitionLedger]) -> dict[str, int]:
    """Return how many offsets each term of the ledgers has, and `unexplained`."""
    found = {term: sum(asdict(one)[term] for one in ledgers) for term in TERMS}
    return {**found, "unexplained": sum(abs(one.unexplained) for one in ledgers)}


def ledger_of_table(manifests: Iterable[Manifest]) -> dict[int, PartitionLedger]:
    """Return the ledger of all loads together, by partition."""
    found: dict[int, PartitionLedger] = {}
    for manifest in manifests:
        for ledger in manifest.ledgers if manifest.kind in MOVES_POSITIONS else ():
            at = ledger.partition
            if at in found:
                # A load that was built on a broken chain may leave a gap: unexplained offsets.
                ledger = replace(found[at], end=ledger.start).followed_by(ledger)
            found[at] = ledger
    return dict(sorted(found.items()))
