"""Checks files of other programs that replaced files of loads, for example by compaction.

Such files are accepted if their rows have the same number and hash as those of the replaced files.
Values that the hash leaves out (topic, microseconds, buckets, the log's statistics) are checked
here. Typed columns and the comparison with the topic are the same as for files of loads.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.check.damaged_files import CallFailed, run_apart
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.layout import RAW, FileLayout
from ottla.lake.model.manifest import DataFile
from ottla.lake.model.row_hash import MODULUS, hash_text, stored_hash
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import FileUnreadable, foreign_batches, rows_problems
from ottla.lake.tables.table import FilesOfOthers, LiveFile


@dataclass(slots=True)
class ForeignRows:
    """The rows in files of other programs, and their problems."""

    # One entry for each file and partition, without a SHA-256, as no load has recorded one.
    files: list[DataFile] = field(default_factory=list)
    rows: int = 0
    hash: int = 0
    replaced: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_foreign(
    store: FileStore,
    others: FilesOfOthers,
    topic: str,
    layout: FileLayout = RAW,
    buckets: Buckets = ONE_BUCKET,
) -> ForeignRows:
    """Read files of other programs, and compare their rows with those of the replaced files.

    `layout` is the layout of the newest load's files. Typed columns are checked later, by tasks.
    """
    found = ForeignRows()
    if not others.gone and not others.instead:
        return found
    crashing = _crashing(store, list(others.instead), layout)
    for path, by_log in others.instead.items():
        if path in crashing:
            found.problems.append(f"{path}, written by another program, {crashing[path]}")
            continue
        try:
            _read(store, by_log, topic, layout, buckets, found)
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


def _crashing(store: FileStore, paths: Sequence[str], layout: FileLayout) -> dict[str, str]:
    """Return the files that crash a reading process, with their problems.

    No load has recorded a digest of these files, so each is first read in another process.
    """
    found: dict[str, str] = {}
    left = list(paths)
    with TemporaryDirectory(prefix="ottla-foreign-") as folder:
        begun = Path(folder) / "begun"
        while left:
            try:
                run_apart(partial(_read_each, store, left, layout, begun))
                break
            except CallFailed as error:
                number = int(begun.read_text() or 0) if begun.exists() else 0
                found[left[number]] = f"can't be read: {error}"
                left = left[number + 1 :]
                begun.unlink(missing_ok=True)
    return found


def _read_each(store: FileStore, paths: Sequence[str], layout: FileLayout, begun: Path) -> None:
    """Read all rows, and write the number of the current file to `begun`.

    Runs in another process.
    """
    for number, path in enumerate(paths):
        begun.write_text(str(number))
        with suppress(OSError, FileUnreadable):
            for batch in foreign_batches(store, path, layout):
                stored_hash(batch)


def _read(
    store: FileStore,
    by_log: LiveFile,
    topic: str,
    layout: FileLayout,
    buckets: Buckets,
    found: ForeignRows,
) -> None:
    path, size = by_log.path, store.size(by_log.path)
    spans: dict[int, tuple[int, int, int]] = {}
    problems: dict[str, None] = {}  # A dict, to keep each problem once and in order.
    for batch in foreign_batches(store, path, layout):
        found.rows += batch.num_rows
        problems |= dict.fromkeys(rows_problems(batch, path, topic, by_log.event, buckets))
        problems |= dict.fromkeys(_outside(batch, by_log))
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
    rows_there = sum(rows for _, _, rows in spans.values())
    if by_log.size_bytes != size or by_log.rows not in (None, rows_there):
        said = f"{by_log.rows} rows in {by_log.size_bytes} bytes"
        problems[f"{path} has {rows_there} rows in {size} bytes, and {said} by the log"] = None
    found.problems += (f"{problem} (another program wrote it)" for problem in problems)
    found.files += [
        DataFile(path, partition, start, end, rows, size, hash_text(0), "")
        for partition, (start, end, rows) in sorted(spans.items())
    ]


def _outside(batch: pa.RecordBatch, by_log: LiveFile) -> Iterator[str]:
    """Yield a line for each column with values outside the log's bounds."""
    for name, (low, high) in by_log.bounds.items():
        if name not in batch.schema.names:
            continue
        column = batch.column(name)
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        found = pc.min_max(column.cast(pa.int64())).as_py()
        if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
            yield f"{by_log.path} has values in column {name} outside the log's {low} to {high}"
