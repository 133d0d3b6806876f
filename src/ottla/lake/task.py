"""One task of a load: fetch a range, write its Parquet file, tell what is in it.

Runs wherever Spark puts it. Every attempt writes a file of its own name, so that a task run
twice, or a zombie of one, can never touch what another wrote.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.cluster import connect
from ottla.lake.manifest import DataFile
from ottla.lake.plan import Range
from ottla.lake.proof import batch_hash
from ottla.lake.reader import read_range
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.lake.schema import ROW_SCHEMA
from ottla.ledger.partition import PartitionLedger, RangeAccount

# How files are written: numbers as differences, the topic's name as a dictionary of one, keys and
# values plain. Statistics stand where a query can prune by them. Types are Parquet's own: Arrow's
# would tell readers of the dictionary.
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


@dataclass(frozen=True, slots=True)
class Task:
    """What one task is told."""

    wanted: Range
    bootstrap: str
    compacted: bool
    folder: str
    path: str  # Where its file goes, relative to `folder`; an attempt adds a name of its own.


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What it did: `file` is None where no record of the range was to be loaded."""

    ledger: PartitionLedger
    file: DataFile | None


def run(task: Task, attempt: str) -> TaskResult:
    """Load the range into a file named after `attempt`. Raises OttlaError; no file stays then."""
    wanted = task.wanted
    account = RangeAccount(wanted.partition, wanted.start, wanted.end, task.compacted)
    path = f"{task.path}-{attempt}.parquet"
    output = _Output(Path(task.folder) / path)
    cluster = connect(task.bootstrap)
    try:
        for batch in read_range(wanted, cluster.fetch(wanted), account):
            output.write(batch)
        output.finish()
    except BaseException:
        output.discard()
        raise
    finally:
        cluster.close()
    ledger = account.ledger()
    if output.rows == 0:
        return TaskResult(ledger, None)
    file = DataFile(
        path=path,
        partition=wanted.partition,
        start=wanted.start,
        end=wanted.end,
        rows=output.rows,
        size_bytes=(Path(task.folder) / path).stat().st_size,
        hash=hash_text(output.hash),
    )
    return TaskResult(ledger, file)


def result_to_text(result: TaskResult) -> str:
    """A result as it travels from a worker to the driver."""
    return json.dumps(asdict(result))


def result_from_text(text: str) -> TaskResult:
    """The inverse of `result_to_text`."""
    fields = json.loads(text)
    file = DataFile(**fields["file"]) if fields["file"] else None
    return TaskResult(PartitionLedger(**fields["ledger"]), file)


def _as_in_file(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, the topic's name told once instead of for each of them."""
    name = batch.column(_TOPIC_COLUMN)[:1]
    which = pa.array(np.zeros(batch.num_rows, np.int32))
    columns = list(batch.columns)
    columns[_TOPIC_COLUMN] = pa.DictionaryArray.from_arrays(which, name)
    return pa.RecordBatch.from_arrays(columns, schema=_FILE_SCHEMA)


class _Output:
    """A Parquet file in the making; does not exist before the first rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0
        self.hash = 0

    def write(self, batch: pa.RecordBatch) -> None:
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
        if self._writer is not None:
            self._writer.close()
            self._path.unlink(missing_ok=True)
