"""The Parquet file of one task: written row group by row group, hashed, forced to disk."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.proof import batch_hash
from ottla.lake.row_hash import MODULUS
from ottla.lake.schema import ROW_SCHEMA

# How files are written: numbers as differences, the topic's name as a dictionary of one, keys and
# values plain. Statistics stand where a query can prune by them. Types are Parquet's own: Arrow's
# would show the dictionary to readers.
_WRITER_OPTIONS: dict[str, Any] = {
    "compression": "snappy",
    "use_dictionary": ["topic"],
    "column_encoding": dict.fromkeys(
        ("partition", "offset", "timestamp", "timestamp_type"), "DELTA_BINARY_PACKED"
    ),
    "write_statistics": ["partition", "offset", "timestamp"],
    "store_schema": False,
}
_TOPIC_COLUMN = ROW_SCHEMA.get_field_index("topic")
_FILE_SCHEMA = ROW_SCHEMA.set(
    _TOPIC_COLUMN, pa.field("topic", pa.dictionary(pa.int32(), pa.string()))
)


class ParquetOutput:
    """A Parquet file in the making, at `path`; does not exist before the first rows.

    `rows` counts what was written, `hash` is its content hash (`row_hash`).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0
        self.hash = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a row group. `batch` has `schema.ROW_SCHEMA`, at least one row, one topic."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, _FILE_SCHEMA, **_WRITER_OPTIONS)
        self._writer.write_batch(_as_in_file(batch))
        self.rows += batch.num_rows
        self.hash = (self.hash + batch_hash(batch)) % MODULUS

    def finish(self) -> None:
        """Close the file and force it to disk: a manifest may name it afterwards."""
        if self._writer is None:
            return
        self._writer.close()
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def discard(self) -> None:
        """Leave no file behind."""
        if self._writer is not None:
            self._writer.close()
            self._path.unlink(missing_ok=True)


def _as_in_file(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with the topic's name once instead of in each of them."""
    name = batch.column(_TOPIC_COLUMN)[:1]
    which = pa.array(np.zeros(batch.num_rows, np.int32))
    columns = list(batch.columns)
    columns[_TOPIC_COLUMN] = pa.DictionaryArray.from_arrays(which, name)
    return pa.RecordBatch.from_arrays(columns, schema=_FILE_SCHEMA)
