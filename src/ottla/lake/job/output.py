"""Writes the Parquet file of one task in row groups, hashes it, and makes it durable."""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.model.layout import RAW, ROW_HASH, FileLayout
from ottla.lake.model.manifest import DataFile
from ottla.lake.model.plan import Range
from ottla.lake.model.row_hash import MODULUS, batch_hash, hash_column, hash_text, stored_hash
from ottla.lake.model.schema import numbers
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.store import FileStore, StoreWriter

# Numbers are delta-encoded, the topic's name is the only entry of a dictionary, and keys and values
# are plain. Columns by which queries skip files get statistics. Arrow's schema is not stored,
# because readers that use it would return the topic as a dictionary type.
_WRITER_OPTIONS: dict[str, Any] = {
    "use_dictionary": ["topic"],
    "column_encoding": dict.fromkeys(
        ("partition", "offset", "timestamp", "timestamp_type"), "DELTA_BINARY_PACKED"
    ),
    "write_statistics": ["partition", "offset", "timestamp"],
    "store_schema": False,
}
# The limits of a row group: its number of rows, and the bytes after which it ends with the current
# batch. Query engines read or skip whole row groups. The bytes, counted in Arrow's columns, limit
# the memory of a task.
ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 64 << 20
# The thread of a file gets parts of this size, and so many of them may wait for it.
_PART_BYTES = 1 << 20
_PARTS_AHEAD = 16
# After so many bytes they are forced to the disk, so that the end of the file waits for few.
_SYNC_BYTES = 32 << 20
_TOPIC_FIELD = pa.field("topic", pa.dictionary(pa.int32(), pa.string()))


class TaskOutput(Protocol):
    """One or more files that a task is writing."""

    def finish(self) -> object:
        """Complete the file and make it durable; then a manifest may name it."""

    def discard(self) -> None:
        """Remove the file, even if the disk is full."""


@contextmanager
def completed(*outputs: TaskOutput) -> Iterator[None]:
    """Finish the outputs at the end of the block, or discard all of them on an error."""
    try:
        yield
        for one in outputs:
            one.finish()
    except BaseException:
        for one in outputs:
            one.discard()
        raise


class _HashedFile:
    """A file that is written from start to end, with the SHA-256 of its bytes.

    A thread hashes, writes and syncs each part while the task makes the next ones.
    """

    closed = False

    def __init__(self, writer: StoreWriter) -> None:
        self._file = writer
        self._digest = hashlib.sha256()
        self._size_bytes = 0
        # The part that is being collected, and those that the thread has not finished.
        self._part: list[bytes] = []
        self._part_bytes = 0
        self._ahead: deque[Future[None]] = deque()
        self._unsynced_bytes = 0
        self._thread = ThreadPoolExecutor(1, "ottla-lake-file")

    def write(self, content: bytes) -> int:
        self._part.append(bytes(content))
        self._part_bytes += len(content)
        self._size_bytes += len(content)
        if self._part_bytes >= _PART_BYTES:
            if len(self._ahead) == _PARTS_AHEAD:
                self._ahead.popleft().result()
            self._ahead.append(self._thread.submit(self._append, self._part))
            self._part, self._part_bytes = [], 0
        return len(content)

    def _append(self, part: Sequence[bytes]) -> None:
        for piece in part:
            self._digest.update(piece)
            self._file.write(piece)
            self._unsynced_bytes += len(piece)
        if self._unsynced_bytes >= _SYNC_BYTES:
            self._unsynced_bytes = 0
            self._file.sync_ahead()

    def tell(self) -> int:
        return self._size_bytes

    def flush(self) -> None:
        """Do nothing, as `StoreWriter.flush`."""

    def close(self) -> None:
        """Do nothing, as `StoreWriter.close`."""

    def finish(self) -> tuple[int, str]:
        """Make the file visible and durable; return its size and digest."""
        while self._ahead:
            self._ahead.popleft().result()
        self._append(self._part)
        self._thread.shutdown()
        self._file.finish()
        return self._size_bytes, self._digest.hexdigest()

    def discard(self) -> None:
        self._thread.shutdown(cancel_futures=True)
        self._file.discard()


class ParquetOutput:
    """A Parquet file that is being written. It is created at `path` with the first row group.

    `rows` is the number of rows so far, and `hash` is their hash (see `row_hash`). `size_bytes` and
    `sha256` are those of the finished file.
    """

    def __init__(
        self,
        store: FileStore,
        path: str,
        *,
        layout: FileLayout = RAW,
        row_group_rows: int = ROW_GROUP_ROWS,
        row_group_bytes: int = ROW_GROUP_BYTES,
    ) -> None:
        self._store = store
        self._path = path
        self._layout = layout
        schema = layout.schema
        self._schema = schema.set(schema.get_field_index("topic"), _TOPIC_FIELD)
        flat = [one.name for one in layout.added if not pa.types.is_nested(one.type)]
        self._options = {
            **_WRITER_OPTIONS,
            "use_dictionary": [*_WRITER_OPTIONS["use_dictionary"], *flat],
            "write_statistics": [*_WRITER_OPTIONS["write_statistics"], *flat],
        }
        self._folder = store.address(path).rpartition("/")[0]
        self._file: _HashedFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._row_group_rows = row_group_rows
        self._row_group_bytes = row_group_bytes
        # Rows that wait until their row group is full, with the columns of the file.
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self.waiting_bytes = 0
        self.rows = 0
        self.hash = 0
        self.size_bytes = 0
        self.sha256 = ""

    def write(self, batch: pa.RecordBatch, added: Sequence[Any] = ()) -> None:
        """Append rows. `batch` has `schema.ROW_SCHEMA`, and at least one row, all of one topic.

        `added` are the layout's columns after the raw columns; the hash covers only the raw
        columns. Raises OttlaError if the file cannot be written, as `finish` does.
        """
        rows = self._as_in_file(batch, added)
        self._add(rows, rows.nbytes if added else batch.nbytes, batch_hash(batch))

    def copy(self, batch: pa.RecordBatch) -> None:
        """Append at least one row of another file with the same layout, all of one topic.

        Raises OttlaError as `write` does.
        """
        columns = list(batch.columns)
        at = batch.schema.get_field_index("topic")
        columns[at] = _named_once(columns[at])
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._add(rows, batch.nbytes, stored_hash(batch))

    def _add(self, rows: pa.RecordBatch, size_bytes: int, hashed: int) -> None:
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self.waiting_bytes += size_bytes
        self.rows += rows.num_rows
        self.hash = (self.hash + hashed) % MODULUS
        with as_storage_error(self._folder):
            while self._waiting_rows >= self._row_group_rows:
                self._write_row_group(self._row_group_rows)
            if self.waiting_bytes >= self._row_group_bytes:
                self._write_row_group(self._waiting_rows)

    def _write_row_group(self, count: int) -> None:
        waiting = pa.Table.from_batches(self._waiting)
        group, rest = waiting.slice(0, count), waiting.slice(count)
        if self._writer is None:
            self._file = _HashedFile(self._store.create(self._path))
            self._writer = pq.ParquetWriter(
                self._file, self._schema, compression=codecs(group), **self._options
            )
        self._writer.write_table(group, row_group_size=count)
        self._waiting = rest.to_batches() if rest.num_rows else []
        self._waiting_rows = rest.num_rows
        self.waiting_bytes = self.waiting_bytes * rest.num_rows // waiting.num_rows

    @property
    def is_open(self) -> bool:
        """Return whether the file was created, which happens with the first row group."""
        return self._writer is not None

    @property
    def waiting_pieces(self) -> int:
        """Return the number of batches that wait for their row group to be full."""
        return len(self._waiting)

    def flush(self) -> None:
        """Write the waiting rows as a row group, if there are any."""
        if self._waiting:
            with as_storage_error(self._folder):
                self._write_row_group(self._waiting_rows)

    def finish(self) -> None:
        """Complete the file and make it durable. Then a manifest may name it."""
        if not self.rows:
            return
        with as_storage_error(self._folder):
            if self._waiting:
                self._write_row_group(self._waiting_rows)
            assert self._writer is not None
            assert self._file is not None
            self._writer.close()
            self.size_bytes, self.sha256 = self._file.finish()

    def as_file(self, partition: int, start: int, end: int, event: str = "") -> DataFile:
        """Describe the finished file, whose rows have offsets in [start, end), for a manifest."""
        return DataFile(
            path=self._path,
            partition=partition,
            start=start,
            end=end,
            rows=self.rows,
            size_bytes=self.size_bytes,
            hash=hash_text(self.hash),
            sha256=self.sha256,
            event=event,
        )

    def letters_of(self, wanted: Range) -> DataFile | None:
        """Describe the finished file of a range's dead letters; None if there are none."""
        return self.as_file(wanted.partition, wanted.start, wanted.end) if self.rows else None

    def discard(self) -> None:
        """Remove the file, even if the disk is full."""
        self._waiting.clear()
        if self._writer is not None:
            # Otherwise the writer would write its footer when it is garbage-collected.
            self._writer.is_open = False
        if self._file is not None:
            self._file.discard()

    def _as_in_file(self, batch: pa.RecordBatch, added: Sequence[Any]) -> pa.RecordBatch:
        """Return the rows with the columns of the file; the topic is a dictionary of one name."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["topic"] = _named_once(columns["topic"])
        if not self._layout.keep_raw:
            columns[ROW_HASH.name] = hash_column(batch)
        raw = len(self._schema) - len(added)
        found = [columns[each] for each in self._schema.names[:raw]]
        return pa.RecordBatch.from_arrays([*found, *added], schema=self._schema)


def _named_once(topics: Any) -> Any:
    """Return a column of one topic's name as a dictionary of one entry."""
    return pa.DictionaryArray.from_arrays(
        numbers(np.zeros(len(topics), np.int32), pa.int32()), topics[:1]
    )


# Spark's default, and the fastest codec if values are already compressed or encrypted. zstd makes
# JSON 40 % smaller in 10 % more time, but takes twice the time for random bytes.
CODEC = "snappy"
_SAMPLED = ("key", "value")
_SAMPLES = 8
_SAMPLE_BYTES = 8 << 10
_ENOUGH_BYTES = 4 << 10
# A column is not compressed if a sample of it shrinks to more than this fraction.
_SMALLER = 0.95


def codecs(group: pa.Table) -> str | dict[str, str]:
    """Choose the codec of a file, or of each of its columns, by its first row group."""
    if any(pa.types.is_nested(one.type) for one in group.schema if one.name != "headers"):
        return CODEC  # Codecs by column would have to name each field of nested columns.
    plain = [name for name in _SAMPLED if name in group.schema.names and _stays(group.column(name))]
    if not plain:
        return CODEC
    paths = [path for one in group.schema for path in _paths(one)]
    return {path: "none" if path in plain else CODEC for path in paths}


def _paths(column: pa.Field) -> list[str]:
    if column.name == "headers":
        return [f"headers.list.element.{name}" for name in ("key", "value")]
    return [column.name]


def _stays(column: Any) -> bool:
    """Return whether a column stays uncompressed, because samples of it shrink too little."""
    sample = b"".join(_samples(column))
    if len(sample) < _ENOUGH_BYTES:
        return False
    return len(pa.compress(sample, codec=CODEC, asbytes=True)) > _SMALLER * len(sample)


def _samples(column: Any) -> Iterator[bytes]:
    step = max(1, column.num_chunks // _SAMPLES)
    per_chunk = -(-_SAMPLES * step // column.num_chunks)
    for number in range(0, column.num_chunks, step):
        content = column.chunk(number).buffers()[2]
        size = content.size if content is not None else 0
        for part in range(per_chunk):
            at = size * part // per_chunk
            yield (
                content[at : at + min(_SAMPLE_BYTES, size // per_chunk)].to_pybytes()
                if size
                else b""
            )
