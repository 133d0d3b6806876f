"""Derives the state of a table after each commit from the ledgers, one commit after another.

A manifest repeats values that follow from it and its predecessors: positions, sums, the previous
digest. This module derives them; a manifest with other values contradicts itself or the chain.

Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.lake.model import event_times as times
from ottla.lake.model.contents import of_files
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.model.row_hash import MODULUS, hash_text
from ottla.ledger.partition import PartitionLedger


@dataclass(frozen=True, slots=True)
class TableStanding:
    """The totals of all commits up to `version`. Version 0 is the empty table."""

    version: int = 0
    digest: str | None = None  # The digest of that version's manifest.
    topic: str | None = None
    topic_id: str | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    total_rows: int = 0
    total_hash: str = hash_text(0)
    # `<load id>:<number of its files>` of each load, in order, separated by blanks.
    loads: str = ""
    writer_epoch: int = 0
    changelog: str = ""  # In words; empty for a table of loads.
    events: str = ""  # In the form of `events.times`; empty for a table without event times.

    def agrees_with(self, manifest: Manifest, digest: str) -> bool:
        """Return whether the manifest of this version, with this digest, has the same totals."""
        said = (manifest.version, digest, manifest.topic, manifest.positions)
        epoch = manifest.writer_epoch
        last = self.loads.rpartition(" ")[2]
        return (
            said == (self.version, self.digest, self.topic, self.positions)
            and (epoch, _changelog_text(manifest)) == (self.writer_epoch, self.changelog)
            and times.said(manifest.events) == self.events
            and (manifest.total_rows, manifest.total_hash) == (self.total_rows, self.total_hash)
            and (self.loads.count(" ") + 1, last) == (self.version, _load_text(manifest))
        )


EMPTY = TableStanding()


def followed_by(
    before: TableStanding, manifest: Manifest, digest: str
) -> tuple[TableStanding, list[str]]:
    """Return the table's state after `manifest`, and the manifest's contradictions to it."""
    problems: list[str] = []
    positions = dict(before.positions)
    for ledger in manifest.ledgers:
        problems += _of_ledger(ledger, positions.get(ledger.partition), manifest)
        if manifest.kind in MOVES_POSITIONS:
            positions[ledger.partition] = ledger.end
    rows, hashed = _sums(manifest.files)
    gone_rows, gone_hash = _sums(manifest.removed)
    after = TableStanding(
        version=before.version + 1,
        digest=digest,
        topic=before.topic or manifest.topic,
        topic_id=before.topic_id or manifest.topic_id,
        positions=positions,
        total_rows=before.total_rows + rows - gone_rows,
        total_hash=hash_text(int(before.total_hash, 16) + hashed - gone_hash),
        loads=f"{before.loads} {_load_text(manifest)}".lstrip(),
        writer_epoch=before.writer_epoch + (manifest.kind == "epoch"),
        changelog=before.changelog if before.positions else _changelog_text(manifest),
        events=times.said(manifest.events),
    )
    problems += of_files(manifest)
    problems += times.contradictions(before.events, manifest.events, manifest.kind, positions)
    said = [
        ("version", manifest.version, after.version),
        ("digest of the manifest before", manifest.previous, before.digest),
        ("topic", manifest.topic, after.topic),
        ("rows", manifest.rows, rows),
        ("hash", manifest.hash, hash_text(hashed)),
        ("total of rows", manifest.total_rows, after.total_rows),
        ("total hash", manifest.total_hash, after.total_hash),
        ("writer epoch", manifest.writer_epoch, after.writer_epoch),
        ("kind of table", _changelog_text(manifest), after.changelog),
    ]
    if before.topic_id and manifest.topic_id:
        said.append(("topic id", manifest.topic_id, before.topic_id))
    said += [
        (f"position of partition {partition}", manifest.positions.get(partition), end)
        for partition, end in sorted(positions.items())
    ]
    problems += [
        f"its {what} is {claimed}, and {derived} by the files and ledgers of the loads"
        for what, claimed, derived in said
        if claimed != derived
    ]
    problems += [
        f"it has a position of partition {partition}, of which nothing was loaded"
        for partition in sorted(manifest.positions.keys() - positions.keys())
    ]
    return after, problems


def _load_text(manifest: Manifest) -> str:
    return f"{manifest.load_id}:{len(manifest.files)}"


def _changelog_text(manifest: Manifest) -> str:
    found = manifest.changelog
    return f"{found.keeps} of each key in {found.buckets} buckets" if found else ""


def _sums(files: Sequence[DataFile]) -> tuple[int, int]:
    """Return the number of rows in the files, and their hash."""
    hashed = sum(int(file.hash, 16) for file in files) % MODULUS
    return sum(file.rows for file in files), hashed


def _of_ledger(ledger: PartitionLedger, position: int | None, manifest: Manifest) -> Iterator[str]:
    what = f"{manifest.kind} {manifest.version}"
    if not ledger.balances or not 0 <= ledger.start <= ledger.end:
        yield f"{what} left offsets unexplained: {ledger}"
    if manifest.kind == "replacement":
        if position is None or ledger.end > position:
            yield (
                f"{what} ends at offset {ledger.end} of partition {ledger.partition}, but the "
                f"loads before it end at {position}"
            )
    elif position is not None and ledger.start != position:
        yield (
            f"{what} starts at offset {ledger.start} of partition {ledger.partition}, "
            f"but the loads before it end at {position}"
        )
