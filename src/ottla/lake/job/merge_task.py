"""The second stage of a changelog run: one task for each bucket that has changes.

A task reads the bucket's state files, applies the changes, and writes new state files. Files of a
history have the columns of a load, then `valid_from` and `valid_to`.
"""

import hashlib
import io
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.output import ParquetOutput, completed
from ottla.lake.job.spilled import read_pieces
from ottla.lake.job.task import ALONE
from ottla.lake.model.layout import FileLayout
from ottla.lake.model.manifest import DataFile, Keeps
from ottla.lake.model.row_hash import (
    MODULUS,
    Words,
    batch_hash,
    canonical_words,
    hash_text,
    rows_hash,
)
from ottla.lake.model.schema import ROW_SCHEMA, VALIDITY
from ottla.lake.rows.changelog_columns import Columns, holds
from ottla.lake.rows.key_changes import Intervals, extended, merged
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.store import FileStore

INTERVAL_SCHEMA = pa.schema([*ROW_SCHEMA, *VALIDITY])
_NO_TIME = np.uint64(1 << 63)
_JOINED_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class MergeTask:
    """The changes to one bucket of a changelog table, to be merged with its state."""

    bucket: int
    store: FileStore
    # Paths of files of changes, each with the numbers of the pieces that belong to this bucket.
    changes: Sequence[tuple[str, Sequence[int]]]
    # The bucket's state files before this run.
    visible: DataFile | None
    hidden: DataFile | None
    # Prefixes of the paths of the new files; each attempt appends its own name.
    visible_path: str
    hidden_path: str
    keeps: Keeps = "latest"
    columns: Columns = field(default_factory=Columns)
    # State files whose columns are not the table's current columns.
    of_other_columns: frozenset[str] = frozenset()
    # Partitions that were read again, with the start offset. Rows of the state from that offset on
    # are dropped.
    again: Mapping[int, int] = field(default_factory=dict)
    size_bytes: int = ALONE

    @property
    def offsets(self) -> int:
        return 0

    def run(self) -> "Merged":
        """Apply the changes to the bucket. Raises OttlaError."""
        return merge_bucket(self)


@dataclass(frozen=True, slots=True)
class Merged:
    """The bucket's new state files. A file is None if it would have no rows."""

    bucket: int
    visible: DataFile | None
    hidden: DataFile | None
    closed: DataFile | None = None  # Only for a history: values that later records have ended.


def merge_bucket(job: MergeTask) -> Merged:
    """Apply the changes to the bucket. Raises OttlaError."""
    batches = [
        batch for path, numbers in job.changes for batch in read_pieces(job.store, path, numbers)
    ]
    changes = pa.Table.from_batches(batches, job.columns.schema)
    schema, operation = schema_of(job.keeps, job.columns), job.columns.operation
    state = pa.concat_tables(
        [_state(job, file, schema) for file in (job.visible, job.hidden) if file]
        or [schema.empty_table()]
    )
    if job.keeps == "history":
        return _with_history(job, extended(state, changes, operation))
    found = merged(state, changes, operation)
    visible = _written(job, job.visible_path, found.visible)
    hidden = _written(job, job.hidden_path, found.hidden)
    return Merged(job.bucket, visible, hidden)


def _state(job: MergeTask, file: DataFile, schema: pa.Schema) -> pa.Table:
    """Return the rows of a state file with the table's current columns."""
    rows = read_state(job.store, file)
    for partition, start in job.again.items():
        from_there = pc.greater_equal(rows.column("offset"), start)
        of_it = pc.equal(rows.column("partition"), partition)
        rows = rows.filter(pc.invert(pc.and_(of_it, from_there)))
    if file.path in job.of_other_columns:
        times = [(one, rows.column(one.name)) for one in VALIDITY if job.keeps == "history"]
        rows = job.columns.decoded(rows)
        for one, column in times:
            rows = rows.append_column(one, column)
    return rows.cast(schema)


def _with_history(job: MergeTask, found: Intervals) -> Merged:
    held = pa.array(holds(found.open, job.columns.operation))
    visible, hidden = found.open.filter(held), found.open.filter(pc.invert(held))
    return Merged(
        job.bucket,
        write_intervals(job.store, job.visible_path, job.bucket, visible),
        write_intervals(job.store, job.hidden_path, job.bucket, hidden),
        write_intervals(job.store, job.visible_path, job.bucket, found.closed, closed=True),
    )


def read_state(store: FileStore, file: DataFile) -> pa.Table:
    """Return the rows of a state file. Raises OttlaError if it is missing or has changed."""
    try:
        content = store.read(file.path)
    except FileNotFoundError as error:
        raise _damaged(store, file, "is missing") from error
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise _damaged(store, file, "is not as it was written")
    # Use one thread, because tasks run in parallel.
    rows: pa.Table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    return rows


def _damaged(store: FileStore, file: DataFile, what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{store.address(file.path)} {what}; nothing was committed on top of it: restore the file "
        "from a copy, or make the table anew in another folder",
    )


def _written(job: MergeTask, stem: str, rows: pa.Table) -> DataFile | None:
    if rows.num_rows == 0:
        return None
    path = f"{stem}-{uuid.uuid4().hex[:12]}.parquet"
    output = ParquetOutput(job.store, path, layout=FileLayout(job.columns.typed))
    with completed(output):
        # Copying many small chunks into one costs less than processing each.
        joined = rows.combine_chunks() if rows.nbytes < _JOINED_BYTES else rows
        for batch in joined.to_batches():
            raw = batch.select(ROW_SCHEMA.names)
            if raw.num_rows:
                output.write(raw, batch.columns[raw.num_columns :])
    return output.as_file(job.bucket, 0, 0)


def schema_of(keeps: Keeps, columns: Columns = Columns()) -> pa.Schema:  # noqa: B008  # Frozen.
    """Return the columns of a changelog table's files."""
    return pa.schema([*columns.schema, *VALIDITY]) if keeps == "history" else columns.schema


def changelog_hash(rows: pa.Table) -> int:
    """Return the hash of a changelog table's rows. In a history it covers both times too."""
    if rows.schema.get_field_index(VALIDITY[0].name) < 0:
        return batch_hash(rows)
    total = 0
    for batch in rows.to_batches():
        if batch.num_rows:
            total += rows_hash(interval_words(batch))
    return total % MODULUS


def interval_words(batch: pa.RecordBatch) -> list[Words]:
    """Return the words to hash for rows of a history: those of the record, then both times."""
    return [*canonical_words(batch), *(_micros(batch.column(one.name)) for one in VALIDITY)]


def _micros(column: pa.Array) -> Words:
    micros = column.cast(pa.int64())
    null = micros.is_null().to_numpy(zero_copy_only=False)
    known: Words = micros.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return np.where(null, _NO_TIME, known)


def write_intervals(
    store: FileStore, stem: str, bucket: int, rows: pa.Table, *, closed: bool = False
) -> DataFile | None:
    """Write a durable file of a bucket's rows; return None if there are no rows."""
    if rows.num_rows == 0:
        return None
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="snappy", store_schema=False)
    content = buffer.getvalue()
    path = f"{stem}-{uuid.uuid4().hex[:12]}.parquet"
    with as_storage_error(store.address(path).rpartition("/")[0]):
        file = store.create(path)
        with completed(file):
            file.write(content)
    return DataFile(
        path=path,
        partition=bucket,
        start=0,
        end=0,
        rows=rows.num_rows,
        size_bytes=len(content),
        hash=hash_text(changelog_hash(rows)),
        sha256=hashlib.sha256(content).hexdigest(),
        closed=closed,
    )
