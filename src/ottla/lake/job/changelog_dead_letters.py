"""Writes the file of dead letters: records that a task could not apply."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.layout import DEAD
from ottla.lake.model.manifest import DataFile
from ottla.lake.model.plan import Range
from ottla.lake.model.row_hash import hash_text
from ottla.lake.store.store import FileStore


class DeadLetterOutput:
    """A file of dead letters that is being written; it is created with the first of them."""

    def __init__(self, store: FileStore, path: str) -> None:
        self._path = path
        self._output = ParquetOutput(store, path, layout=DEAD)

    @property
    def rows(self) -> int:
        return self._output.rows

    def write(self, rows: pa.RecordBatch, reasons: Sequence[Any]) -> None:
        """Append rows with their columns `DEAD_FIELDS`."""
        if rows.num_rows:
            self._output.write(rows, reasons)

    def refuse(self, rows: pa.RecordBatch, stage: str, why: str) -> None:
        """Append rows that are all refused for the same reason."""
        count = rows.num_rows
        millis = pc.divide(rows.column("timestamp").cast(pa.int64()), 1_000)
        reasons = [
            pa.array([stage] * count, pa.string()),
            pa.array([why] * count, pa.string()),
            pa.nulls(count, pa.int64()),
            millis,
        ]
        self._output.write(rows, reasons)

    def finish(self) -> None:
        """Complete the file and make it durable."""
        self._output.finish()

    def discard(self) -> None:
        """Remove the file."""
        self._output.discard()

    def file(self, wanted: Range) -> DataFile | None:
        """Return the file in the form of a manifest; None if it has no rows."""
        if self.rows == 0:
            return None
        return DataFile(
            path=self._path,
            partition=wanted.partition,
            start=wanted.start,
            end=wanted.end,
            rows=self.rows,
            size_bytes=self._output.size_bytes,
            hash=hash_text(self._output.hash),
            sha256=self._output.sha256,
        )
