"""Compares the live files of a table, and their rows, with the manifests and the format's log.

The SHA-256 finds any flipped bit. Columns and rows are compared too, to say what has changed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.layout import DEAD, FileLayout, layout_of
from ottla.lake.model.manifest import DataFile, TableSchema
from ottla.lake.model.plan import Range
from ottla.lake.model.row_hash import MODULUS, hash_text, stored_hash
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import (
    NO_PARQUET,
    FileUnreadable,
    check_bytes,
    foreign_batches,
    rows_problems,
)
from ottla.lake.tables.format_log import bounds_problems
from ottla.lake.tables.statistics import read_statistics


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The lowest and highest value of each column, by file, from the log of format `kind`."""

    kind: str = ""
    files: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)

    def of(self, paths: Collection[str]) -> "LogBounds":
        """Return the bounds of the files at `paths`."""
        return LogBounds(self.kind, {p: self.files[p] for p in paths if p in self.files})

    def problems(self, store: FileStore, file: DataFile) -> list[str]:
        """Return the columns whose bounds exclude values of the file, which must be undamaged."""
        bounds = self.files.get(file.path)
        if not bounds:
            return []
        try:
            footer = read_statistics(store, file)
        except NO_PARQUET:
            return []  # Problems of the file itself are reported where it is read.
        return bounds_problems(self.kind, file.path, bounds, footer)


NO_BOUNDS = LogBounds()


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A live file of rows or of dead letters."""

    file: DataFile
    schema: TableSchema | None = None
    is_dead: bool = False
    bounds: LogBounds = NO_BOUNDS
    buckets: Buckets = ONE_BUCKET
    # If another program wrote the file: the load's files that it may replace, with their schemas.
    replaces: tuple[tuple[DataFile, TableSchema | None], ...] = ()

    @property
    def layout(self) -> FileLayout:
        return DEAD if self.is_dead else layout_of(self.schema)

    @property
    def keeps_raw(self) -> bool:
        """Return whether its rows have keys, values and headers, and not only their hash."""
        return self.layout.keep_raw

    @property
    def is_foreign(self) -> bool:
        """Return whether another program wrote the file. Then no manifest has its digest."""
        return not self.file.sha256


def rows_of(
    store: FileStore, files: Iterable[HeldFile], wanted: Range, damaged: DamagedFiles
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `files` whose offsets lie in `wanted`. `damaged` reads damaged files."""
    for held in files:
        file = held.file
        if file.start >= wanted.end or file.end <= wanted.start:
            continue
        try:
            # A file of another program may have rows of several partitions.
            batches = (
                foreign_batches(store, file.path, held.layout)
                if held.is_foreign
                else damaged.batches(file.path, held.layout)
            )
            for batch in batches:
                offsets = batch.column("offset")
                inside = pc.and_(
                    pc.greater_equal(offsets, wanted.start), pc.less(offsets, wanted.end)
                )
                if held.is_foreign:
                    of_it = pc.equal(batch.column("partition"), wanted.partition)
                    inside = pc.and_(inside, of_it)
                yield batch.filter(inside)
        except (OSError, FileUnreadable):
            continue  # The check of the file has reported this already.


def exists(store: FileStore, path: str) -> bool:
    """Return whether the file exists."""
    try:
        store.size(path)
    except FileNotFoundError:
        return False
    return True


@dataclass(slots=True)
class FileFindings:
    """The rows of a file, counted and hashed, and its problems."""

    rows: int = 0
    hash: int = 0
    problems: list[str] = field(default_factory=list)


def checked_rows(
    store: FileStore,
    file: DataFile,
    layout: FileLayout,
    damaged: DamagedFiles,
    found: FileFindings,
    *,
    place: str,
    hash_of: Callable[[pa.RecordBatch], int] = stored_hash,
) -> Iterator[pa.RecordBatch]:
    """Yield the readable rows of a file, and add differences from its manifest to `found`.

    A file with changed bytes is added to `damaged`. `place` names the rows in messages.
    """
    try:
        changed = check_bytes(store, file)
        if changed:
            found.problems += changed
            damaged.add(file.path, layout)
        for batch in damaged.batches(file.path, layout):
            if batch.num_rows:
                found.rows += batch.num_rows
                found.hash = (found.hash + hash_of(batch)) % MODULUS
                yield batch
    except FileNotFoundError:
        found.problems.append(f"{file.path} is missing: {file.rows} rows of {place}")
    except OSError as error:
        found.problems.append(f"{file.path} can't be read: {error}")
    except FileUnreadable as error:
        found.problems.append(f"{file.path} {error}")
    else:
        if (found.rows, hash_text(found.hash)) != (file.rows, file.hash):
            found.problems.append(
                f"{file.path} holds {found.rows} rows with hash {hash_text(found.hash)}; its "
                f"manifest says {file.rows} rows with hash {file.hash}"
            )


def check_file(
    store: FileStore,
    file: DataFile,
    topic: str,
    layout: FileLayout,
    damaged: DamagedFiles,
    buckets: Buckets = ONE_BUCKET,
) -> FileFindings:
    """Check one file of a load against its manifest.

    Offsets must rise and lie within the file's range, and all rows must belong to the file's
    event-time bucket.
    """
    found = FileFindings()
    place = f"partition {file.partition}, offsets {file.start} to {file.end}"
    rows = checked_rows(store, file, layout, damaged, found, place=place)
    _check_rows(rows, file, topic, buckets, found)
    return found


def _check_rows(
    batches: Iterable[pa.RecordBatch],
    file: DataFile,
    topic: str,
    buckets: Buckets,
    found: FileFindings,
) -> None:
    last_offset = file.start - 1
    for batch in batches:
        offsets = batch.column("offset")
        steps = pc.min(pc.subtract(offsets[1:], offsets[:-1])).as_py() if len(batch) > 1 else 1
        if steps <= 0 or offsets[0].as_py() <= last_offset or offsets[-1].as_py() >= file.end:
            found.problems.append(f"{file.path} holds an offset twice, or one of another range")
        last_offset = offsets[-1].as_py()
        if pc.unique(batch.column("partition")).to_pylist() != [file.partition]:
            found.problems.append(f"{file.path} holds rows of another partition")
        found.problems += rows_problems(batch, file.path, topic, file.event, buckets)
