"""Where a table stands after each of its loads, derived from their ledgers one after another.

A manifest repeats what follows from it and its predecessors: positions, sums, the predecessor's
digest. Here that is derived; a manifest that says otherwise contradicts itself or the chain.

Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.ledger.partition import PartitionLedger


@dataclass(frozen=True, slots=True)
class TableStanding:
    """What the loads up to `version` add up to. Version 0 is the empty table."""

    version: int = 0
    digest: str | None = None  # Of the manifest of that version.
    topic: str | None = None
    topic_id: str | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    total_rows: int = 0
    total_hash: str = hash_text(0)
    # `<load id>:<number of its files>` of each load, in order, with blanks between.
    loads: str = ""

    def agrees_with(self, manifest: Manifest, digest: str) -> bool:
        """Whether the manifest of this version, with this digest, says the same."""
        said = (manifest.version, digest, manifest.topic, manifest.positions)
        last = self.loads.rpartition(" ")[2]
        return (
            said == (self.version, self.digest, self.topic, self.positions)
            and (manifest.total_rows, manifest.total_hash) == (self.total_rows, self.total_hash)
            and (self.loads.count(" ") + 1, last) == (self.version, _load_text(manifest))
        )


EMPTY = TableStanding()


def followed_by(
    before: TableStanding, manifest: Manifest, digest: str
) -> tuple[TableStanding, list[str]]:
    """Return where the table stands after `manifest`, and what in it contradicts that."""
    problems: list[str] = []
    positions = dict(before.positions)
    for ledger in manifest.ledgers:
        problems += _of_ledger(ledger, positions.get(ledger.partition), manifest.version)
        positions[ledger.partition] = ledger.end
    load_hash = sum(int(file.hash, 16) for file in manifest.files) % MODULUS
    after = TableStanding(
        version=before.version + 1,
        digest=digest,
        topic=before.topic or manifest.topic,
        topic_id=before.topic_id or manifest.topic_id,
        positions=positions,
        total_rows=before.total_rows + sum(file.rows for file in manifest.files),
        total_hash=hash_text(int(before.total_hash, 16) + load_hash),
        loads=f"{before.loads} {_load_text(manifest)}".lstrip(),
    )
    problems += _of_files(manifest)
    said = [
        ("version", manifest.version, after.version),
        ("digest of the manifest before", manifest.previous, before.digest),
        ("topic", manifest.topic, after.topic),
        ("rows", manifest.rows, after.total_rows - before.total_rows),
        ("hash", manifest.hash, hash_text(load_hash)),
        ("total of rows", manifest.total_rows, after.total_rows),
        ("total hash", manifest.total_hash, after.total_hash),
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


def _of_ledger(ledger: PartitionLedger, position: int | None, version: int) -> Iterator[str]:
    if not ledger.balances or not 0 <= ledger.start <= ledger.end:
        yield f"load {version} left offsets unexplained: {ledger}"
    if position is not None and ledger.start != position:
        yield (
            f"load {version} starts at offset {ledger.start} of partition {ledger.partition}, "
            f"but the loads before it end at {position}"
        )


def _of_files(manifest: Manifest) -> Iterator[str]:
    """Compare files, skipped offsets and ledgers of one load."""
    by_partition: dict[int, list[DataFile]] = {}
    for file in manifest.files:
        by_partition.setdefault(file.partition, []).append(file)
        if PurePosixPath(file.path).parts[:-1] != ("data",):
            yield f"it names {file.path}, which is not in the table's folder of data"
    if len({file.path for file in manifest.files}) < len(manifest.files):
        yield "it names a file twice"
    skipped: dict[int, int] = {}
    for one in manifest.skipped:
        skipped[one.partition] = skipped.get(one.partition, 0) + one.end - one.start
    for ledger in manifest.ledgers:
        partition, files = ledger.partition, by_partition.pop(ledger.partition, [])
        if sum(file.rows for file in files) != ledger.loaded:
            yield f"its files and its ledger of partition {partition} count different rows"
        if not _touch_in_order(files, ledger):
            yield f"its files of partition {partition} do not lie in its ledger, in order"
        if skipped.pop(partition, 0) != ledger.unreadable:
            yield f"it does not name the unreadable offsets that partition {partition} counts"
    for partition in sorted(by_partition.keys() | skipped.keys()):
        yield f"it has files or skipped offsets of partition {partition}, and no ledger of it"


def _touch_in_order(files: Sequence[DataFile], ledger: PartitionLedger) -> bool:
    position = ledger.start
    for file in files:
        if not position <= file.start < file.end <= ledger.end:
            return False
        if not 0 < file.rows <= file.end - file.start:
            return False
        position = file.end
    return True
