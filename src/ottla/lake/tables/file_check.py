"""Reads a data file: compares its bytes with the manifest, and checks its rows."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.event_times import Buckets, buckets_of
from ottla.lake.model.layout import RAW, ROW_HASH, FileLayout, in_columns
from ottla.lake.model.manifest import DataFile
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.store.store import FileStore

_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 20
_NEVER_NULL = [name for name in ROW_SCHEMA.names if name not in {"key", "value", "timestamp"}]
_NEVER_NULL.append(ROW_HASH.name)
# Exceptions that Arrow raises for damaged Parquet, depending on the damaged bytes.
NO_PARQUET = (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, MemoryError)


class FileUnreadable(Exception):
    """Raised if the rows of a file cannot be read."""


def file_batches(store: FileStore, path: str, layout: FileLayout = RAW) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, after a check of its columns.

    Raises OSError if the file cannot be opened, and FileUnreadable if its content is bad.
    """
    with store.open(path) as content:
        try:
            with pq.ParquetFile(content) as file:
                _require_columns(file.schema_arrow, layout.schema)
                for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
                    batch.validate(full=True)
                    _require_values(batch)
                    yield batch
        except NO_PARQUET as error:
            raise FileUnreadable(f"can't be read: {error}") from error


def foreign_batches(store: FileStore, path: str, layout: FileLayout) -> Iterator[pa.RecordBatch]:
    """Yield the rows of another program's file, with the columns and types of a load's files.

    `layout` is the layout of the newest load's files. Typed columns that the file lacks are null,
    as readers of the table see them. Raises as `file_batches` does.
    """
    raw = FileLayout(keep_raw=layout.keep_raw).schema.names
    with store.open(path) as content:
        try:
            # By default, Arrow reads Spark's INT96 timestamps as nanoseconds.
            with pq.ParquetFile(content, coerce_int96_timestamp_unit="us") as file:
                for read in file.iter_batches(batch_size=_ROWS_AT_ONCE):
                    read.validate(full=True)
                    rows = pa.Table.from_batches([read])
                    rows.select(raw)  # Raises KeyError for a missing column.
                    for batch in in_columns(rows, layout.schema).combine_chunks().to_batches():
                        _require_values(batch)
                        yield batch
        except NO_PARQUET as error:
            raise FileUnreadable(f"can't be read: {error}") from error


def _require_columns(schema: pa.Schema, expected: pa.Schema) -> None:
    """Raise FileUnreadable if the columns differ from those that a load writes."""
    wrong = []
    for wanted in expected:
        at = schema.get_field_index(wanted.name)
        if at < 0:
            wrong.append(f"no column {wanted.name}")
        elif schema.field(at).type != wanted.type:
            kind = schema.field(at).type
            wrong.append(f"column {wanted.name} of type {kind} instead of {wanted.type}")
    more = [name for name in schema.names if name not in expected.names]
    wrong += [f"a column {name} that no load writes" for name in more]
    if not wrong and schema.names != expected.names:
        wrong.append("its columns in another order")
    if wrong:
        raise FileUnreadable(f"has {', '.join(wrong)}")


def _require_values(batch: pa.RecordBatch) -> None:
    """Raise FileUnreadable for nulls that a row's hash cannot represent."""
    for name in _NEVER_NULL:
        if name in batch.schema.names and batch.column(name).null_count:
            raise FileUnreadable(f"holds nulls in column {name}")
    if "headers" not in batch.schema.names:
        return
    elements = batch.column("headers").flatten()
    if elements.null_count or pc.struct_field(elements, "key").null_count:
        raise FileUnreadable("holds headers without a name")


def rows_problems(
    batch: pa.RecordBatch, path: str, topic: str, event: str | None, buckets: Buckets
) -> list[str]:
    """Return problems of values that the hash leaves out: topic, microseconds, event-time bucket.

    If `event` is given, all rows must belong to that event-time bucket.
    """
    problems = []
    if pc.unique(batch.column("topic")).to_pylist() != [topic]:
        problems.append(f"{path} holds rows of another topic")
    micros = batch.column("timestamp").cast(pa.int64())
    if pc.any(pc.not_equal(pc.multiply(pc.divide(micros, 1000), 1000), micros)).as_py():
        problems.append(f"{path} holds timestamps that are no whole milliseconds")
    others = buckets_of(batch.column(buckets.column), buckets.by) if event else set()
    if others - {event}:
        named = ", ".join(sorted(others - {event})[:3])
        problems.append(f"{path} holds rows of {named}, which is no {event}")
    return problems


def check_bytes(store: FileStore, file: DataFile) -> list[str]:
    """Return differences of a file's size and SHA-256 from its manifest. Raises OSError."""
    with store.open(file.path) as content:
        if (size := content.seek(0, os.SEEK_END)) != file.size_bytes:
            return [
                f"{file.path} is not as it was written: {size} bytes; its manifest says "
                f"{file.size_bytes} bytes"
            ]
        content.seek(0)
        hashed = hashlib.sha256()
        while piece := content.read(_BYTES_AT_ONCE):
            hashed.update(piece)
        size, digest = content.tell(), hashed.hexdigest()
    if (size, digest) == (file.size_bytes, file.sha256):
        return []
    return [
        f"{file.path} is not as it was written: {size} bytes with SHA-256 {digest}; its "
        f"manifest says {file.size_bytes} bytes with {file.sha256}"
    ]


# Files are checked in parallel, because a check of a remote file mostly waits.
_FILES_AT_ONCE = 8


def require_files(store: FileStore, files: Iterable[DataFile]) -> None:
    """Raise OttlaError if a file's size or row count differs from the task's result.

    The row count is that of the footer; rows are not read.
    """
    described = list(files)
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        found = list(pool.map(lambda file: _wrong(store, file), described))
    for file, wrong in zip(described, found, strict=True):
        if wrong:
            raise OttlaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"a task wrote {file.path}, which {wrong} in {store.url} where the load is "
                "committed; nothing was committed: the target must be one folder that the driver "
                "and all workers share, such as a network file system",
            )


def _wrong(store: FileStore, file: DataFile) -> str:
    """Return the file's problem, worded to follow "which"; empty if there is none."""
    try:
        size = store.size(file.path)
        if size != file.size_bytes:
            return f"has {size} bytes instead of {file.size_bytes}"
        with store.open(file.path) as content:
            rows = pq.read_metadata(content).num_rows
    except FileNotFoundError:
        return "is missing"
    except NO_PARQUET as error:
        return f"can't be read ({error})"
    return "" if rows == file.rows else f"has {rows} rows instead of {file.rows}"
