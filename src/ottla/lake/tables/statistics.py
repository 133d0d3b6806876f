"""What the footer of a Parquet file says of its columns, for the logs of Delta and Iceberg.

Query engines skip files by it, so bounds are exact or left out. Values are as Parquet stores them:
a timestamp is a number of microseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from ottla.lake.manifest import DataFile
from ottla.lake.stores.store import FileStore

# Other physical types have bounds that may be cut off (bytes) or meet NaN (floats).
_EXACT_TYPES = frozenset({"INT32", "INT64"})


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """The least and the greatest value of a column in one file, and how many are null."""

    low: int
    high: int
    nulls: int


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """One file's rows, bounds by column, and where its row groups begin."""

    rows: int
    columns: Mapping[str, ColumnBounds]
    row_group_starts: Sequence[int]


def read_statistics(store: FileStore, file: DataFile) -> FileStatistics:
    """Read the footer of `file`."""
    with store.open(file.path) as content:
        return statistics_of(pq.read_metadata(content))


def statistics_of(footer: Any) -> FileStatistics:
    """Return what a footer (`pyarrow.parquet.FileMetaData`) says."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = {}
    for at in range(footer.num_columns):
        column = footer.schema.column(at)
        # A name with a dot may be a field of another column: neither has bounds here.
        if column.physical_type in _EXACT_TYPES and "." not in column.path:
            bounds = _bounds([group.column(at).statistics for group in groups])
            if bounds is not None:
                columns[column.path] = bounds
    starts = sorted(_start(group.column(0)) for group in groups)
    return FileStatistics(footer.num_rows, columns, starts)


def _bounds(parts: Sequence[Any]) -> ColumnBounds | None:
    """The bounds over all row groups; None where one of them does not say."""
    if not parts or not all(part is not None and part.has_null_count for part in parts):
        return None
    bounded = [part for part in parts if part.has_min_max]
    # A row group of nothing but nulls has no bounds, and needs none.
    if not bounded or any(part.num_values for part in parts if not part.has_min_max):
        return None
    return ColumnBounds(
        min(part.min_raw for part in bounded),
        max(part.max_raw for part in bounded),
        sum(part.null_count for part in parts),
    )


def _start(column: Any) -> int:
    first = column.dictionary_page_offset
    start: int = column.data_page_offset if first is None else min(first, column.data_page_offset)
    return start
