"""The sources of a publish: a lake table, or files of Parquet, CSV or JSON lines.

A source is a list of files in a fixed order, each with rows in a fixed order. `Fields` says which
columns of a row become the key, value and other parts of a record.
"""

import base64
import csv
import io
import itertools
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.rows.publish_row import Row
from ottla.lake.store.store import FileStore
from ottla.lake.store.targets import folder_of, open_store
from ottla.lake.tables.formats import file_options, is_own
from ottla.lake.tables.opening import existing_table

_KINDS = (".parquet", ".csv", ".jsonl", ".ndjson", ".json")
_BATCH_ROWS = 16_384
_HEX_NAME = "\ufffdhex:"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source, by its path relative to the source's root."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns that make a record. If `value` is None, the value is all columns as JSON."""

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    partition: str | None = None
    headers: str | None = None


def over(given: Fields | None, found: Fields) -> Fields:
    """Return `found`, with the columns that `given` names in place of its own."""
    if given is None:
        return found
    named = {name: column for name, column in asdict(given).items() if column is not None}
    return replace(found, **named)


# The columns of a table that `ottla lake load` wrote.
RAW = Fields(key="key", value="value", timestamp="timestamp", headers="headers")


def as_row(fields: Fields, columns: Mapping[str, Any]) -> Row:
    """Return the record of a row. Raises OttlaError if a column is missing or does not fit."""
    headers = _column(columns, fields.headers)
    partition, at = _column(columns, fields.partition), _column(columns, fields.timestamp)
    return Row(
        as_bytes(_column(columns, fields.key)),
        _json(columns) if fields.value is None else as_bytes(_column(columns, fields.value)),
        [_header(entry) for entry in headers or ()],
        None,
        None if partition is None else _number(fields.partition or "", partition),
        None if at is None else milliseconds(at),
    )


def _column(columns: Mapping[str, Any], name: str | None) -> Any:
    """Return the value of a column; None if `name` is None. Raises OttlaError if it is missing."""
    if name is None:
        return None
    try:
        return columns[name]
    except KeyError:
        raise _wrong(f"there is no column {name!r}; there are {', '.join(columns)}") from None


def as_bytes(value: Any) -> bytes | None:
    """Return a column as key or value: text as UTF-8, bytes unchanged, anything else as JSON."""
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
    return _json(value)


def milliseconds(value: Any) -> int:
    """Return a time in milliseconds since 1970; ISO 8601 text without a zone is UTC."""
    if isinstance(value, bool):
        raise _wrong(f"the timestamp {value!r} is no time")
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _wrong(f"the timestamp {value!r} is neither milliseconds nor ISO 8601") from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


def _header(entry: Mapping[str, Any]) -> tuple[str, bytes | None]:
    name = entry["key"]
    if name.startswith(_HEX_NAME):
        raise _wrong(f"a header's name is not UTF-8 (bytes {name.removeprefix(_HEX_NAME)})")
    return name, entry["value"]


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise _wrong(f"column {name!r} has {value!r}, which is no partition") from None


def _json(value: Any) -> bytes:
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"publish: {what}")


class PublishSource:
    """Files in order, in a store."""

    def __init__(
        self, store: FileStore, files: Sequence[SourceFile], fields: Fields, left_out: int = 0
    ) -> None:
        self.files = files
        self.left_out = left_out  # Files of other programs in a table, which are not published.
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
        """Return a Parquet file's number of rows; None for other files, to avoid reading them."""
        path = self.files[place].path
        if not path.endswith(".parquet"):
            return None
        with self._store.open(path) as file:
            count: int = pq.ParquetFile(file).metadata.num_rows
            return count

    def _json_rows(self, file: BinaryIO, path: str) -> Iterator[Row]:
        """Yield one row for each line that is not empty. By default the line is the value."""
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
    """Open a source: the folder of a table, a folder of files, or one file.

    By default a record is made of a table's raw columns, or of all columns of a file as JSON;
    `fields` overrides this. Raises OttlaError.
    """
    name = PurePosixPath(source).name
    if name.lower().endswith(_KINDS):
        folder = source[: -len(name)] or "."
        store = open_store(folder, file_options(store_options))
        files = [SourceFile(name, _size(store, name, source))]
        return PublishSource(store, files, over(fields, _fields_of(store, files)))
    store = open_store(source, file_options(store_options))
    if is_own(store.top()):
        table = existing_table(source, store_options)
        live = _in_order(table.live_files(), list(table.history()))
        files = [SourceFile(file.path, file.size_bytes) for file in live]
        left_out = len(set(table.live_paths()) - {file.path for file in live})
        return PublishSource(table.store, files, over(fields, RAW), left_out)
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
    """Return files in the order in which loads first committed their offsets.

    Files of a compaction or a replacement come from a later commit, but have earlier offsets.
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
    """Return the raw columns if the first file has them, as a table's files do, else no columns."""
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
