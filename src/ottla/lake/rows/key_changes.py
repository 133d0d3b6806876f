"""Applies changes to the state of a changelog table: the latest values, or a history, of each key.

All functions are pure, and work on columns. A change is a record with a key; a null value deletes
the key. In a partition, the change with the highest offset is the latest of its key, as in Kafka's
compaction. If partitions were added to the topic, a key may be in several of them. Then the
partition's latest change with the highest timestamp is visible, or that of the highest partition if
timestamps are equal. The state of a table is the latest change of each key in each partition,
deletions included. So changes may be applied in batches of any size, and a batch that is applied
twice changes nothing.

In a history, a value is valid from its record's timestamp until the timestamp of the next change of
its key in its partition. The last value is still valid (`valid_to` is null), unless the last change
is a deletion, which only ends the previous value. Changes are ordered by offset. If the timestamp
of a change is earlier than that of the change before it, the later timestamp is used for both. So
at any time a key has at most one value in a partition (`as_of`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.model.row_hash import bytes_sums
from ottla.lake.model.schema import VALIDITY
from ottla.lake.rows.changelog_columns import Flags, holds

Numbers = npt.NDArray[np.int64]
# The time of a record whose timestamp does not fit into the column. It sorts before all others.
_NO_TIME = np.int64(-(1 << 63))


@dataclass(frozen=True, slots=True)
class LatestRows:
    """The state of a table of latest values, in two parts.

    `visible` has one row for each key that is not deleted, and is what readers see. `hidden` has
    deletions, and changes that a change in another partition replaces.
    """

    visible: pa.Table
    hidden: pa.Table


def latest_changes(changes: pa.Table) -> pa.Table:
    """Return the latest change of each key in each partition. No key may be null."""
    return changes.filter(pa.array(is_latest(changes)))


def is_latest(changes: pa.Table) -> Flags:
    """Return a flag for each row: whether it is the latest change of its key in its partition."""
    found, _ = _latest(_Changes(changes))
    return found


def merged(state: pa.Table, changes: pa.Table, operation: str | None = None) -> LatestRows:
    """Apply `changes` to `state`. Both have the same columns, and no null key.

    `operation` is the column that says which rows are deletions (`changelog_columns.holds`).
    """
    rows = pa.concat_tables([state, changes])
    found = _Changes(rows)
    latest, of_several = _latest(found)
    shown = latest & holds(rows, operation)
    # If a key is in several partitions, only one change is visible.
    at = np.flatnonzero(latest & of_several)
    times = times_of(rows)
    at = at[np.lexsort((found.partitions[at], times[at], found.keys[at]))]
    shown[at[~ends_group(found.keys[at])]] = False
    return LatestRows(rows.filter(pa.array(shown)), rows.filter(pa.array(latest & ~shown)))


class _Changes:
    """The columns that decide which change of a key is the latest."""

    def __init__(self, rows: pa.Table) -> None:
        self.keys = key_codes(rows)
        self.partitions = integers(rows, "partition")
        self.offsets = integers(rows, "offset")


def _latest(rows: _Changes) -> tuple[Flags, Flags]:
    """Return two flags for each row: is it the latest change, and is its key in several partitions.

    Hot: nearly always a key is in one partition and its changes are in order of offset. Then the
    last row of a key is its latest change, and no sort is needed. Other keys are found first, and
    only their rows are sorted.
    """
    keys, partitions, offsets = rows.keys, rows.partitions, rows.offsets
    last = np.zeros(int(keys.max(initial=-1)) + 1, np.int64)
    last[keys] = np.arange(len(keys))  # If an index repeats, the last assignment wins.
    of_last = last[keys]
    is_elsewhere = partitions != partitions[of_last]
    is_odd = is_elsewhere | (offsets > offsets[of_last])
    found = np.zeros(len(keys), np.bool_)
    found[last] = True
    if not is_odd.any():
        return found, np.zeros(len(keys), np.bool_)
    at = np.flatnonzero(_of_groups_with(is_odd, keys))
    at = at[np.lexsort((offsets[at], partitions[at], keys[at]))]
    found[at] = ends_group(keys[at], partitions[at])
    return found, _of_groups_with(is_elsewhere, keys)


def _of_groups_with(flags: Flags, groups: Numbers) -> Flags:
    """Return a flag for each row: whether any row of its group has a flag in `flags`."""
    found = np.zeros(int(groups.max(initial=-1)) + 1, np.bool_)
    found[groups[flags]] = True
    of_rows: Flags = found[groups]
    return of_rows


def buckets_of(keys: pa.ChunkedArray, count: int) -> Numbers:
    """Return the bucket (0 to count - 1) of each key, which is the same in every process."""
    column = keys.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # An array without chunks.
        column = pa.array([], pa.binary())
    column = column.cast(pa.large_binary())
    _, bounds, content = column.buffers()
    offsets = np.frombuffer(bounds, np.int64)[column.offset :][: len(column) + 1]
    sums, weighted = bytes_sums(np.frombuffer(content or b"", np.uint8), offsets)
    lengths = (offsets[1:] - offsets[:-1]).astype(np.uint64)
    return ((sums ^ weighted >> np.uint64(7) ^ lengths) % np.uint64(count)).astype(np.int64)


def ends_group(*columns: Numbers) -> Flags:
    """Return a flag for each row of sorted columns: whether it is the last with its values."""
    count = len(columns[0])
    ends = np.ones(count, np.bool_)
    if count > 1:
        ends[:-1] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return ends


def key_codes(rows: pa.Table) -> Numbers:
    """Return a number for each row's key, the same for equal keys."""
    keys = rows.column("key")
    assert keys.null_count == 0, "a change has a key"
    encoded = pc.dictionary_encode(keys).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        return np.zeros(0, np.int64)
    codes: Numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def integers(rows: pa.Table, name: str) -> Numbers:
    """Return a column of integers without nulls."""
    values: Numbers = rows.column(name).cast(pa.int64()).to_numpy().astype(np.int64)
    return values


def times_of(rows: pa.Table) -> Numbers:
    """Return timestamps in microseconds. A null timestamp sorts before all others."""
    times = rows.column("timestamp").cast(pa.int64())
    known: Numbers = times.fill_null(int(_NO_TIME)).to_numpy()
    return known


_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Intervals:
    """The rows of a history, with the columns `VALIDITY` after those of the changes.

    `closed` has values that have ended, and never change again. `open` has the last change of each
    key and partition: a value that is still valid, or a deletion (see `changelog_columns.holds`).
    """

    closed: pa.Table
    open: pa.Table


def extended(open_rows: pa.Table, changes: pa.Table, operation: str | None = None) -> Intervals:
    """Apply `changes`, in any order, to the open rows.

    A change whose offset is not above that of the open row of its key and partition is skipped. No
    key may be null. `operation` is the column that says which rows are deletions.
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
    """Return the values that were valid at a time, with the columns of changes.

    `micros` is in microseconds since 1970. `intervals` are rows of visible files, or closed and
    open rows together; deletions are left out.
    """
    held = pc.and_(holds_at(intervals, micros), intervals.column("value").is_valid())
    rows = intervals.filter(held)
    return rows.drop_columns([field.name for field in VALIDITY])


def holds_at(intervals: pa.Table | pa.RecordBatch, micros: int) -> Any:
    """Return a flag for each row, as an Arrow array: whether it was valid at a time."""
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
    """Return a flag for each row of sorted groups: whether it is before the group's open row."""
    group: Numbers = np.cumsum(is_last) - is_last
    place = np.arange(len(is_change))
    open_place = np.zeros(len(is_change), np.int64)
    open_place[group[~is_change]] = place[~is_change]
    before: Flags = place < open_place[group]
    return before


def _repeats(*columns: Numbers) -> Flags:
    """Return a flag for each row of sorted columns: whether it equals the previous row."""
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
