"""The sources of a publish: a lake table, or files of Parquet, CSV or JSON lines.

A source is a list of files in a fixed order, each with its rows in a fixed order.
"""

import csv
import io
import itertools
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.rows.publish_row import Row
from ottla.lake.store.store import FileStore
from ottla.lake.store.targets import folder_of, open_store
from ottla.lake.tables.formats import is_own
from ottla.lake.tables.opening import existing_table
from ottla.lake.write.publish_fields import RAW, Fields, as_row, over
from ottla.lake.write.publish_position import SourceFile

_KINDS = (".parquet", ".csv", ".jsonl", ".ndjson", ".json")
_BATCH_ROWS = 16_384


class PublishSource:
    """Files in order, in a store."""

    def __init__(self, store: FileStore, files: Sequence[SourceFile], fields: Fields) -> None:
        self.files = files
        self._store = store
        self._fields = fields

    def rows(self, place: int, start: int) -> Iterator[Row]:
        """Yield the rows of the file at `place` from row `start` on. Raises OttlaError."""
        path = self.files[place].path
        with self._store.open(path) as file:
            if path.endswith(".parquet"):
                found = _parquet_rows(file, start)
            elif path.endswith(".csv"):
                found = itertools.islice(_csv_rows(file), start, None)
            else:
                yield from itertools.islice(self._json_rows(file, path), start, None)
                return
            for columns in found:
                yield as_row(self._fields, columns)

    def row_count(self, place: int) -> int | None:
        """Return how many rows a file has, if that is quick to know."""
        path = self.files[place].path
        if not path.endswith(".parquet"):
            return None
        with self._store.open(path) as file:
            count: int = pq.ParquetFile(file).metadata.num_rows
            return count

    def _json_rows(self, file: BinaryIO, path: str) -> Iterator[Row]:
        """Yield one row for each line that is not empty; the unchanged line is the value."""
        needs_columns = self._fields != Fields()
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text:
                continue
            if not needs_columns:
                yield Row(None, text, [], None, None, None)
                continue
            columns = _object(text, path, number)
            row = as_row(self._fields, columns)
            yield row._replace(value=text) if self._fields.value is None else row


def open_source(
    source: str, fields: Fields | None, store_options: Mapping[str, str] | None = None
) -> PublishSource:
    """Open the source that the words name: a table's folder, a folder of files, or one file.

    `fields` overrule the default columns: a table's raw columns, else all columns as JSON. Raises
    OttlaError.
    """
    name = PurePosixPath(source).name
    if name.lower().endswith(_KINDS):
        folder = source[: -len(name)] or "."
        store = open_store(folder, store_options)
        files = [SourceFile(name, _size(store, name, source))]
        return PublishSource(store, files, over(fields, _fields_of(store, files)))
    store = open_store(source, store_options)
    if is_own(store.top()):
        table = existing_table(source, store_options)
        live = _in_order(table.live_files(), list(table.history()))
        files = [SourceFile(file.path, file.size_bytes) for file in live]
        return PublishSource(table.store, files, over(fields, RAW))
    files = sorted(
        (
            SourceFile(file.path, file.size_bytes)
            for file in store.files("")
            if file.path.lower().endswith(_KINDS)
        ),
        key=lambda file: file.path,
    )
    if not files:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"there is nothing to publish in {folder_of(source)}: no table, and no file named "
            f"{', '.join('*' + kind for kind in _KINDS)}",
        )
    return PublishSource(store, files, over(fields, _fields_of(store, files)))


def _in_order(live: Sequence[DataFile], history: Sequence[Manifest]) -> list[DataFile]:
    """Return files in the order of the loads whose offsets they have, even after replacement.

    A compaction or a replacement is a later commit of earlier offsets.
    """
    if history and history[-1].changelog is not None:
        return list(live)
    versions: dict[int, list[int]] = {}
    starts: dict[int, list[int]] = {}
    for manifest in history:
        for ledger in manifest.ledgers if manifest.kind in MOVES_POSITIONS else ():
            starts.setdefault(ledger.partition, []).append(ledger.start)
            versions.setdefault(ledger.partition, []).append(manifest.version)

    def place(file: DataFile) -> tuple[int, int, int, str]:
        load = bisect_right(starts.get(file.partition, []), file.start) - 1
        version = versions[file.partition][load] if load >= 0 else 0
        return version, file.partition, file.start, file.event

    return sorted(live, key=place)


def _size(store: FileStore, name: str, source: str) -> int:
    try:
        return store.size(name)
    except FileNotFoundError:
        raise OttlaError(ErrorCode.INVALID_REQUEST, f"there is no file {source}") from None


def _fields_of(store: FileStore, files: Sequence[SourceFile]) -> Fields:
    """Return the raw columns if the first file has them, as files of a table do; else JSON."""
    if files[0].path.endswith(".parquet"):
        with store.open(files[0].path) as file:
            names = set(pq.ParquetFile(file).schema_arrow.names)
        if {RAW.key, RAW.value, RAW.timestamp, RAW.headers} <= names:
            return RAW
    return Fields()


def _parquet_rows(file: BinaryIO, start: int) -> Iterator[dict[str, Any]]:
    parquet = pq.ParquetFile(file)
    group = 0
    while group < parquet.num_row_groups and start >= parquet.metadata.row_group(group).num_rows:
        start -= parquet.metadata.row_group(group).num_rows
        group += 1
    groups = list(range(group, parquet.num_row_groups))
    if not groups:
        return
    for batch in parquet.iter_batches(_BATCH_ROWS, groups):
        if start < batch.num_rows:
            yield from batch.slice(start).to_pylist()
        start = max(0, start - batch.num_rows)


def _csv_rows(file: BinaryIO) -> Iterator[dict[str, Any]]:
    yield from csv.DictReader(io.TextIOWrapper(file, "utf-8", newline=""))


def _object(text: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _bad_line(path, number, str(error)) from None
    if not isinstance(found, dict):
        raise _bad_line(path, number, "it is no object")
    return found


def _bad_line(path: str, number: int, why: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_RECORD,
        f"line {number} of {path} is not a JSON object ({why}); mend it, and publish again: what "
        "was before it is published already, or is with it",
    )
