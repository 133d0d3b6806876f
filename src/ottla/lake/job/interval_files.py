"""Writes files of a history: the columns of a load, then `valid_from` and `valid_to`."""

import hashlib
import io
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
from ottla.lake.rows.changelog_columns import Columns
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.store import FileStore

INTERVAL_SCHEMA = pa.schema([*ROW_SCHEMA, *VALIDITY])
_NO_TIME = np.uint64(1 << 63)


def schema_of(keeps: Keeps, columns: Columns = Columns()) -> pa.Schema:  # noqa: B008  # Frozen.
    """Return the columns of a changelog table's files."""
    return pa.schema([*columns.schema, *VALIDITY]) if keeps == "history" else columns.schema


def changelog_hash(rows: pa.Table) -> int:
    """Return the hash of a changelog table's rows; rows of a history have two more words."""
    if rows.schema.get_field_index(VALIDITY[0].name) < 0:
        return batch_hash(rows)
    total = 0
    for batch in rows.to_batches():
        if batch.num_rows:
            total += rows_hash(interval_words(batch))
    return total % MODULUS


def interval_words(batch: pa.RecordBatch) -> list[Words]:
    """Return the canonical form of rows of a history: that of the record, then both times."""
    return [*canonical_words(batch), *(_micros(batch.column(one.name)) for one in VALIDITY)]


def _micros(column: pa.Array) -> Words:
    micros = column.cast(pa.int64())
    null = micros.is_null().to_numpy(zero_copy_only=False)
    known: Words = micros.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return np.where(null, _NO_TIME, known)


def write_intervals(
    store: FileStore, stem: str, bucket: int, rows: pa.Table, *, closed: bool = False
) -> DataFile | None:
    """Write a file of a bucket's rows, durably; return None if there are no rows."""
    if rows.num_rows == 0:
        return None
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="snappy", store_schema=False)
    content = buffer.getvalue()
    path = f"{stem}-{uuid.uuid4().hex[:12]}.parquet"
    with as_storage_error(store.address(path).rpartition("/")[0]):
        file = store.create(path)
        try:
            file.write(content)
            file.finish()
        except BaseException:
            file.discard()
            raise
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
