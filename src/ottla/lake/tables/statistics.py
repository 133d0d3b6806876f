"""Column statistics from the footer of a Parquet file, for the logs of Delta and Iceberg.

Query engines skip files by these bounds, so a bound that is not exact is left out. Values are as
Parquet stores them: a timestamp is a number of microseconds.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

from ottla.lake.model.manifest import DataFile
from ottla.lake.store.store import FileStore

# Bounds of other physical types may be truncated (bytes) or affected by NaN (floats).
_EXACT_TYPES = frozenset({"INT32", "INT64"})


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """The lowest and highest value of a column in one file, and its number of nulls."""

    low: int
    high: int
    nulls: int


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The number of rows in a file, and its bounds by column."""

    rows: int
    columns: Mapping[str, ColumnBounds]


def read_statistics(store: FileStore, file: DataFile) -> FileStatistics:
    """Read the footer of `file`."""
    with store.open(file.path) as content:
        return statistics_of(pq.read_metadata(content))


def statistics_of(footer: Any) -> FileStatistics:
    """Return the statistics in a footer (`pyarrow.parquet.FileMetaData`)."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = {}
    for at in range(footer.num_columns):
        column = footer.schema.column(at)
        # A path with a dot may be a nested field or a column with a dot in its name, so it gets no
        # bounds.
        if column.physical_type in _EXACT_TYPES and "." not in column.path:
            bounds = _bounds([group.column(at).statistics for group in groups])
            if bounds is not None:
                columns[column.path] = bounds
    return FileStatistics(footer.num_rows, columns)


def _bounds(parts: Sequence[Any]) -> ColumnBounds | None:
    """Return the bounds over all row groups; None if a row group has no statistics."""
    if not parts or not all(part is not None and part.has_null_count for part in parts):
        return None
    bounded = [part for part in parts if part.has_min_max]
    # A row group with only nulls has no bounds and needs none.
    if not bounded or any(part.num_values for part in parts if not part.has_min_max):
        return None
    return ColumnBounds(
        min(part.min_raw for part in bounded),
        max(part.max_raw for part in bounded),
        sum(part.null_count for part in parts),
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def delta_statistics(found: FileStatistics, kinds: dict[str, str]) -> str:
    """Return `found` as JSON for Delta; `kinds` has Delta's type of each column to include."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, bounds in found.columns.items():
        kind = kinds.get(name)
        if kind is None:
            continue
        nulls[name] = bounds.nulls
        least, greatest = _value(bounds.low, kind), _value(bounds.high, kind)
        if least is not None and greatest is not None:
            low[name], high[name] = least, greatest
    content = {"numRecords": found.rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return json.dumps(content, separators=(",", ":"))


def _value(stored: int, kind: str) -> int | str | None:
    if kind in {"integer", "long", "short", "byte"}:
        return stored
    if kind != "timestamp" or stored % 1000:
        return None  # Delta's text has only milliseconds, so a bound would be wrong.
    try:
        time = _EPOCH + timedelta(microseconds=stored)
    except OverflowError:
        return None
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z" if time.year > 999 else None
