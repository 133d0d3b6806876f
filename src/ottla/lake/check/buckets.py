"""Checks one bucket of a changelog table: its files against their manifests and a replay.

files   have the bytes, columns and rows that their manifests hash
state   each key of a partition occurs once; the latest value of a key is visible, other changes are
        hidden
topic   each row is the record at its offset; no key has a later record below the table's position;
        no key is missing

Runs in the process of `verify` or in a task of Spark, with the same findings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.differences import Differences, named
from ottla.lake.check.files import NO_BOUNDS, FileFindings, LogBounds, checked_rows
from ottla.lake.check.report import CheckFindings
from ottla.lake.job.spilled import read_pieces
from ottla.lake.model.layout import layout_of
from ottla.lake.model.manifest import Changelog, DataFile, TableSchema
from ottla.lake.model.row_hash import MODULUS, batch_hash, header_texts
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.changelog_columns import Flags
from ottla.lake.rows.key_changes import (
    Numbers,
    buckets_of,
    ends_group,
    integers,
    is_latest,
    key_codes,
    latest_changes,
    merged,
)
from ottla.lake.rows.proof_rows import TypedCheck
from ottla.lake.store.store import FileStore

DifferencesBy = dict[int, Differences]


@dataclass(frozen=True, slots=True)
class ReplayedBucket:
    """The replayed changes of one bucket: files of changes, and the pieces in them."""

    store: FileStore
    pieces: Sequence[tuple[str, Sequence[int]]]
    # The offset at which each partition's replay begins.
    floors: Mapping[int, int]
    schema: pa.Schema = ROW_SCHEMA

    def changes(self) -> pa.Table:
        """Return each task's latest change of a key."""
        batches = [
            batch
            for path, numbers in self.pieces
            for batch in read_pieces(self.store, path, numbers)
        ]
        return pa.Table.from_batches(batches, self.schema)


@dataclass(frozen=True, slots=True)
class BucketTask:
    """A bucket to check. Can be pickled."""

    bucket: int
    store: FileStore
    topic: str
    changelog: Changelog
    visible: Sequence[DataFile]
    hidden: Sequence[DataFile]
    # The typed columns of files that have some, by path.
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    # The column that says which rows are deletions.
    operation: str | None = None
    bounds: LogBounds = NO_BOUNDS
    # If None, the files are only compared with their manifests.
    replayed: ReplayedBucket | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in (*self.visible, *self.hidden))

    @property
    def offsets(self) -> int:
        return 0

    @property
    def columns(self) -> pa.Schema:
        """Return the columns to compare: raw columns, and the operation."""
        more = [pa.field(self.operation, pa.string())] if self.operation else []
        return pa.schema([*ROW_SCHEMA, *more])

    def run(self) -> CheckFindings:
        """Check the bucket's files and rows, and compare them with the replay if there is one."""
        found, replayed = CheckFindings(), self.replayed
        visible, hidden = _rows(self, self.visible, found), _rows(self, self.hidden, found)
        found.rows += visible.num_rows
        found.hash = (found.hash + batch_hash(visible)) % MODULUS
        found.of_files += contradictions(
            self.bucket, self.changelog.buckets, visible, hidden, self.operation
        )
        is_keyed = not visible.column("key").null_count + hidden.column("key").null_count
        if replayed and is_keyed:
            state = latest_changes(pa.concat_tables([visible, hidden]))
            topic = latest_changes(replayed.changes())
            compare(state, topic, replayed.floors, found.differences)
        return found


def _rows(task: BucketTask, files: Sequence[DataFile], found: CheckFindings) -> pa.Table:
    """Return the rows of files that can be read; problems are added to `found`."""
    empty = task.columns.empty_table()
    return pa.concat_tables([empty, *(_rows_of(task, one, found) for one in files)])


def _rows_of(task: BucketTask, file: DataFile, found: CheckFindings) -> pa.Table:
    names = task.columns.names
    layout = layout_of(task.schemas.get(file.path))
    in_file = FileFindings()
    with DamagedFiles(task.store) as damaged:
        rows = pa.Table.from_batches(
            checked_rows(
                task.store,
                file,
                layout,
                damaged,
                in_file,
                place=f"bucket {file.partition}",
            ),
            layout.schema,
        )
    found.of_files += in_file.problems or task.bounds.problems(task.store, file)
    _check_rows(task, file, rows, found)
    for name in names:
        # The column did not exist yet when the file was written.
        if name not in rows.schema.names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    return rows.select(names)


def _check_rows(task: BucketTask, file: DataFile, rows: pa.Table, found: CheckFindings) -> None:
    if set(rows.column("topic").unique().to_pylist()) - {task.topic}:
        found.of_files.append(f"{file.path} holds rows of another topic")
    schema = task.schemas.get(file.path)
    if schema is not None:
        problems = TypedCheck(schema).of_own_rows(rows.to_batches())
        found.of_files += [f"{file.path}: {problem}" for problem in problems]


def _key_problems(bucket: int, buckets: int, state: pa.Table) -> Iterator[str]:
    if state.column("key").null_count:
        yield f"bucket {bucket} holds rows without a key"
    elif (buckets_of(state.column("key"), buckets) != bucket).any():
        yield f"bucket {bucket} holds keys of other buckets"


def contradictions(
    bucket: int,
    buckets: int,
    visible: pa.Table,
    hidden: pa.Table,
    operation: str | None = None,
) -> Iterator[str]:
    """Yield contradictions between the rows of a bucket of latest values."""
    state = pa.concat_tables([visible, hidden])
    yield from _key_problems(bucket, buckets, state)
    if state.column("key").null_count:
        return
    again = state.filter(pa.array(~is_latest(state)))
    if again.num_rows:
        yield f"bucket {bucket} holds a key of a partition twice {_named_places(again)}"
    wanted = merged(state, state.slice(0, 0), operation).visible
    if not np.array_equal(_sorted_places(wanted), _sorted_places(visible)):
        yield (
            f"bucket {bucket} hides rows that are the latest of their keys, or shows others "
            f"{_named(_places(wanted) ^ _places(visible))}"
        )


def _sorted_places(rows: pa.Table) -> Numbers:
    """Return the partition and offset of each row, sorted."""
    places = np.stack([integers(rows, "partition"), integers(rows, "offset")])
    found: Numbers = places[:, np.lexsort(places[::-1])]
    return found


def _places(rows: pa.Table) -> set[tuple[int, int]]:
    """Return the partition and offset of each row."""
    partitions, offsets = integers(rows, "partition"), integers(rows, "offset")
    return set(zip(partitions.tolist(), offsets.tolist(), strict=True))


def _named_places(rows: pa.Table) -> str:
    return _named(_places(rows))


def _named(places: Collection[tuple[int, int]]) -> str:
    """Return the first few places as text."""
    words = [f"{partition}:{offset}" for partition, offset in sorted(places)]
    return f"(PARTITION:OFFSET): {named(words)}"


def compare(
    state: pa.Table, topic: pa.Table, floors: Mapping[int, int], found: DifferencesBy
) -> None:
    """Add differences between a bucket's rows and the topic's latest changes to `found`.

    Both sides have one row for each key in each partition. `floors` has the offsets at which the
    records of `topic` begin.
    """
    rows = pa.concat_tables([topic, state])
    keys = key_codes(rows)
    partitions = integers(rows, "partition")
    of_state = np.arange(rows.num_rows) >= topic.num_rows
    order = np.lexsort((of_state, partitions, keys))
    partitions, of_state = partitions[order], of_state[order]
    offsets = integers(rows, "offset")[order]
    # In each pair the first row is the topic's, the second the table's.
    alone, first, second = _pairs(ends_group(keys[order], partitions))
    in_topic, in_table = offsets[first], offsets[second]
    same = in_topic == in_table
    equal = _equal(rows.take(order[first]), rows.take(order[second]))
    for partition in np.unique(partitions).tolist():
        here = partitions[second] == partition
        single = alone & (partitions == partition)
        below = single & of_state & (offsets < floors.get(partition, 0))
        one = found.setdefault(partition, Differences())
        one.compared += int((here & same & equal).sum())
        one.below_start += int(below.sum())
        one.missing += offsets[single & ~of_state].tolist()
        one.outdated += in_table[here & (in_topic > in_table)].tolist()
        one.altered += in_table[here & same & ~equal].tolist()
        one.extra += in_table[here & (in_topic < in_table)].tolist()
        one.extra += offsets[single & of_state & ~below].tolist()


def _pairs(is_last: Flags) -> tuple[Flags, Numbers, Numbers]:
    """Return which rows are alone in their group, and the positions of both rows of each pair.

    A group has one or two rows; `is_last` says which rows end a group.
    """
    is_first = np.ones(len(is_last), np.bool_)
    is_first[1:] = is_last[:-1]
    first: Numbers = np.flatnonzero(is_first & ~is_last)
    return is_first & is_last, first, first + 1


def _equal(some: pa.Table, others: pa.Table) -> Flags:
    """Return for each row whether it equals the other side's row, byte for byte."""
    found = np.ones(some.num_rows, np.bool_)
    for name in ROW_SCHEMA.names:
        one, other = (_comparable(rows.column(name)) for rows in (some, others))
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        same = pc.or_(pc.fill_null(pc.equal(one, other), False), both_null)
        found &= same.to_numpy()
    return found


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a type that Arrow can compare; headers become bytes."""
    if column.type != ROW_SCHEMA.field("headers").type:
        return column
    chunks = [pa.array(header_texts(chunk), pa.binary()) for chunk in column.chunks]
    return pa.chunked_array(chunks, pa.binary())
