"""Files that other programs put in the place of a table's own, such as when they compact it.

Rows may stand in other files than those that a load wrote, if they are the same rows: their number
and their hash say so. They are then compared with the topic as rows of the load's files would be.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from ottla.lake.folder.apart import CallFailed, run_apart
from ottla.lake.folder.file_check import FileUnreadable, foreign_batches
from ottla.lake.manifest import DataFile
from ottla.lake.proof import stored_hash
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.table import FilesOfOthers


@dataclass(slots=True)
class ForeignRows:
    """What the files of others hold, and what is to be said of them."""

    # One for each file and partition; without SHA-256, which no load wrote down.
    files: list[DataFile] = field(default_factory=list)
    rows: int = 0
    hash: int = 0
    replaced: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_foreign(store: FileStore, others: FilesOfOthers, *, keeps_raw: bool) -> ForeignRows:
    """Read the files that others have written, and compare their rows with those they replace."""
    found = ForeignRows()
    if not others.gone and not others.instead:
        return found
    crashing = _crashing(store, others.instead, keeps_raw)
    for path in others.instead:
        if path in crashing:
            found.problems.append(f"{path}, written by another program, {crashing[path]}")
            continue
        try:
            _read(store, path, keeps_raw, found)
        except (OSError, FileUnreadable) as error:
            found.problems.append(f"{path}, written by another program, can't be read: {error}")
    wanted = (
        sum(file.rows for file in others.gone),
        hash_text(sum(int(file.hash, 16) for file in others.gone)),
    )
    by = ", ".join(others.by) or "the log does not say by what any more"
    if (found.rows, hash_text(found.hash)) == wanted:
        found.replaced.append(
            f"{len(others.gone)} files of loads were replaced by others ({len(others.instead)}) "
            f"with the same {found.rows} rows: {by}"
        )
    else:
        found.problems.append(
            f"another program changed rows: {len(others.gone)} files of loads with {wanted[0]} "
            f"rows (hash {wanted[1]}) count no more, and {len(others.instead)} of others count "
            f"with {found.rows} rows (hash {hash_text(found.hash)}): {by}"
        )
    return found


def _crashing(store: FileStore, paths: Sequence[str], keeps_raw: bool) -> dict[str, str]:
    """The files that end the process which reads them: no load has their digests to compare."""
    found: dict[str, str] = {}
    left = list(paths)
    with TemporaryDirectory(prefix="ottla-foreign-") as folder:
        begun = Path(folder) / "begun"
        while left:
            try:
                run_apart(partial(_read_each, store, left, keeps_raw, begun))
                break
            except CallFailed as error:
                number = int(begun.read_text() or 0) if begun.exists() else 0
                found[left[number]] = f"can't be read: {error}"
                left = left[number + 1 :]
                begun.unlink(missing_ok=True)
    return found


def _read_each(store: FileStore, paths: Sequence[str], keeps_raw: bool, begun: Path) -> None:
    """Read all rows, and write down how far it comes. Runs in a process apart."""
    for number, path in enumerate(paths):
        begun.write_text(str(number))
        with suppress(OSError, FileUnreadable):
            for batch in foreign_batches(store, path, keeps_raw=keeps_raw):
                stored_hash(batch)


def _read(store: FileStore, path: str, keeps_raw: bool, found: ForeignRows) -> None:
    spans: dict[int, tuple[int, int, int]] = {}
    for batch in foreign_batches(store, path, keeps_raw=keeps_raw):
        found.rows += batch.num_rows
        found.hash = (found.hash + stored_hash(batch)) % MODULUS
        by_partition = (
            pa.Table.from_batches([batch])
            .group_by("partition")
            .aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")])
        )
        for row in by_partition.to_pylist():
            low, high, rows = spans.get(row["partition"], (row["offset_min"], 0, 0))
            spans[row["partition"]] = (
                min(low, row["offset_min"]),
                max(high, row["offset_max"] + 1),
                rows + row["offset_count"],
            )
    found.files += [
        DataFile(path, partition, start, end, rows, store.size(path), hash_text(0), "")
        for partition, (start, end, rows) in sorted(spans.items())
    ]


def remaining(live: Sequence[DataFile], others: FilesOfOthers) -> list[DataFile]:
    """The files of loads that count still."""
    gone = {file.path for file in others.gone}
    return [file for file in live if file.path not in gone]
