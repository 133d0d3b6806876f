"""Computes the time for which each value of a key held. Pure, by columns.

A value holds from its record's timestamp until that of the next change of its key in its partition.
The last value still holds (`valid_to` is null), unless the last change is a deletion, which only
ends the previous value. Changes are ordered by offset. If a timestamp is earlier than that of the
previous change, the previous one's is used, so that times never overlap: at any time a key has at
most one value in a partition (`as_of`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.model.schema import VALIDITY
from ottla.lake.rows.changelog_columns import Flags, holds
from ottla.lake.rows.latest import Numbers, ends_group, integers, key_codes, times_of

_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Intervals:
    """Values with their times, in columns `VALIDITY` after those of the changes.

    `closed` values change no more. `open` values still hold; `open` also includes deletions that
    are the last change of their key (distinguished by `typed.holds`): they end the previous value
    and begin none.
    """

    closed: pa.Table
    open: pa.Table


def extended(open_rows: pa.Table, changes: pa.Table, operation: str | None = None) -> Intervals:
    """Apply `changes`, in any order, to the open rows.

    A change is skipped if its offset is not above that of the open row with the same key and
    partition. No key may be null. `operation` is the column that says which rows are deletions.
    """
    rows = pa.concat_tables([open_rows, _starting(changes)])
    keys, partitions, offsets = (
        key_codes(rows),
        integers(rows, "partition"),
        integers(rows, "offset"),
    )
    is_change = np.arange(rows.num_rows) >= open_rows.num_rows
    order = np.lexsort((is_change, offsets, partitions, keys))
    columns = keys[order], partitions[order]
    order = order[
        ~_comes_before_open(is_change[order], ends_group(*columns))
        & ~_repeats(*columns, offsets[order])
    ]
    rows, is_last = rows.take(pa.array(order)), ends_group(keys[order], partitions[order])
    starts = _running_highest(integers(rows, "valid_from"), is_last)
    ends = pa.array(np.append(starts[1:], 0)[: len(starts)], mask=is_last)
    rows = _replaced(rows, pa.array(starts), ends)
    closed = rows.filter(pa.array(~is_last & holds(rows, operation)))
    return Intervals(closed, rows.filter(pa.array(is_last)))


def nothing_yet(schema: pa.Schema) -> pa.Table:
    """Return the empty open rows of a new history, for changes with `schema`."""
    return pa.schema([*schema, *VALIDITY]).empty_table()


def as_of(intervals: pa.Table, micros: int) -> pa.Table:
    """Return the values that held at a time (microseconds since 1970), in the changes' columns.

    `intervals` are rows of visible files, or closed and open rows together; deletions are left out.
    """
    held = pc.and_(holds_at(intervals, micros), intervals.column("value").is_valid())
    rows = intervals.filter(held)
    return rows.drop_columns([field.name for field in VALIDITY])


def holds_at(intervals: pa.Table | pa.RecordBatch, micros: int) -> Any:
    """Return which rows held at a time, as an Arrow array."""
    moment = pa.scalar(micros, _TIME)
    begins, ends = intervals.column("valid_from"), intervals.column("valid_to")
    return pc.and_(
        pc.less_equal(begins, moment),
        pc.fill_null(pc.greater(ends, moment), True),  # Arrow's signature.
    )


def _starting(changes: pa.Table) -> pa.Table:
    starts = pa.array(times_of(changes)).cast(_TIME)
    ends = pa.nulls(changes.num_rows, _TIME)
    table = changes.append_column(VALIDITY[0], starts)
    return table.append_column(VALIDITY[1], ends)


def _replaced(rows: pa.Table, starts: pa.Array, ends: pa.Array) -> pa.Table:
    for field, values in zip(VALIDITY, (starts, ends), strict=True):
        rows = rows.set_column(rows.schema.get_field_index(field.name), field, values.cast(_TIME))
    return rows


def _comes_before_open(is_change: Flags, is_last: Flags) -> Flags:
    """Return for each row of sorted groups whether it comes before its group's open row."""
    group: Numbers = np.cumsum(is_last) - is_last
    place = np.arange(len(is_change))
    open_place = np.zeros(len(is_change), np.int64)
    open_place[group[~is_change]] = place[~is_change]
    before: Flags = place < open_place[group]
    return before


def _repeats(*columns: Numbers) -> Flags:
    """Return for each row of sorted columns whether it equals the previous row."""
    repeats = np.zeros(len(columns[0]), np.bool_)
    repeats[1:] = np.all([column[1:] == column[:-1] for column in columns], axis=0)
    return repeats


def _running_highest(values: Numbers, is_last: Flags) -> Numbers:
    """Return the highest value so far within each group of adjacent rows."""
    if len(values) == 0:
        return values
    distinct, ranks = np.unique(values, return_inverse=True)
    group: Numbers = np.cumsum(is_last) - is_last
    floor = group * len(distinct)
    highest: Numbers = distinct[np.maximum.accumulate(ranks + floor) - floor]
    return highest
