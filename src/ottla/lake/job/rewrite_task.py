"""The task of a compaction: reads the rows of some files and writes them as one file.

It runs on any executor. Each attempt writes a file with a name of its own, as in tasks of a load.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.output import ParquetOutput, completed
from ottla.lake.model.layout import FileLayout, in_columns, layout_of
from ottla.lake.model.manifest import DataFile, TableSchema
from ottla.lake.model.row_hash import MODULUS, hash_text
from ottla.lake.rows.changelog_columns import Columns, columns_from
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import FileUnreadable, check_bytes, file_batches


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Writes the offsets [start, end) of neighbouring files of one partition as one file."""

    store: FileStore
    path: str  # Prefix of the path of the new file; each attempt appends its own name.
    files: tuple[DataFile, ...]
    start: int
    end: int
    layout: FileLayout
    row_group_bytes: int
    # `older` has the columns of files with older columns, by path. `columns` are the new columns.
    older: Mapping[str, TableSchema | None] = field(default_factory=dict)
    columns: TableSchema | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def offsets(self) -> int:
        return 0

    def run(self) -> DataFile | None:
        """Write the file; return None if it would have no rows.

        Raises OttlaError, for example if an old file differs from its manifest. Then no new file
        remains.
        """
        path = f"{self.path}-{uuid.uuid4().hex[:12]}.parquet"
        output = ParquetOutput(
            self.store, path, layout=self.layout, row_group_bytes=self.row_group_bytes
        )
        with completed(output):
            for file in self.files:
                _copy(self, file, output)
        if output.rows == 0:
            return None
        first = self.files[0]
        return output.as_file(first.partition, self.start, self.end, first.event)


def _copy(wanted: RewriteTask, file: DataFile, output: ParquetOutput) -> None:
    rows, hashed = output.rows, output.hash
    is_whole = wanted.start <= file.start and file.end <= wanted.end
    try:
        # Compare all bytes, because the hash of the rows does not cover typed columns.
        if check_bytes(wanted.store, file):
            raise _damaged(file, "is not as it was written")
        for batch in _batches(wanted, file):
            kept = batch
            if not is_whole:
                offsets = batch.column("offset")
                inside = pc.and_(
                    pc.greater_equal(offsets, wanted.start), pc.less(offsets, wanted.end)
                )
                kept = batch.filter(inside)
            if kept.num_rows:
                output.copy(kept)
    except FileNotFoundError as error:
        raise _damaged(file, "is missing") from error
    except FileUnreadable as error:
        raise _damaged(file, str(error)) from error
    copied = (output.rows - rows, hash_text((output.hash - hashed) % MODULUS))
    if is_whole and copied != (file.rows, file.hash):
        raise _damaged(file, "does not hold the rows that its manifest says")


def _batches(wanted: RewriteTask, file: DataFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns to write.

    If the file has older columns, its keys and values are decoded again. If it has no keys and
    values, typed values are kept, and converted to wider types.
    """
    if file.path not in wanted.older:
        yield from file_batches(wanted.store, file.path, wanted.layout)
        return
    newer = columns_from(wanted.columns) if wanted.layout.keep_raw else Columns()
    for batch in file_batches(wanted.store, file.path, layout_of(wanted.older[file.path])):
        rows = newer.decoded(pa.Table.from_batches([batch]))
        yield from in_columns(rows, wanted.layout.schema).to_batches()


def _damaged(file: DataFile, what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{file.path} {what}; nothing was committed. `ottla lake verify` tells what is wrong with "
        f"the table, and `ottla lake replace --offsets {file.partition}:{file.start}-{file.end}` "
        "reads its rows from the topic again",
    )
