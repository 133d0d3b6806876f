"""Checks one bucket of a changelog table: its files against their manifests and a replay.

files   have the bytes, columns and rows that their manifests hash
state   each key of a partition occurs once; the latest value of a key is visible, other changes are
        hidden; in a history, each value is valid until the next change of its key
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
from ottla.lake.job.merge_task import changelog_hash
from ottla.lake.job.spilled import read_pieces
from ottla.lake.model.layout import FileLayout, layout_of
from ottla.lake.model.manifest import Changelog, DataFile, TableSchema
from ottla.lake.model.row_hash import MODULUS, header_texts
from ottla.lake.model.schema import ROW_SCHEMA, VALIDITY
from ottla.lake.rows.changelog_columns import Flags, holds
from ottla.lake.rows.key_changes import (
    Numbers,
    buckets_of,
    ends_group,
    extended,
    integers,
    is_latest,
    key_codes,
    latest_changes,
    merged,
    nothing_yet,
)
from ottla.lake.rows.proof_rows import TypedCheck
from ottla.lake.store.store import FileStore

_FROM, _TO = (one.name for one in VALIDITY)
# The end of the validity of a current value.
_HOLDS = np.int64((1 << 63) - 1)

DifferencesBy = dict[int, Differences]


@dataclass(frozen=True, slots=True)
class ReplayedBucket:
    """The replayed changes of one bucket: files of changes, and the pieces in them."""

    store: FileStore
    pieces: Sequence[tuple[str, Sequence[int]]]
    # `floors` has the offset at which each partition's replay begins. `whole` has the partitions
    # whose changes were all replayed.
    floors: Mapping[int, int]
    whole: Collection[int]
    schema: pa.Schema = ROW_SCHEMA

    def changes(self) -> pa.Table:
        """Return the changes; for a table of latest values, each task's latest change of a key."""
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
    def is_history(self) -> bool:
        return self.changelog.keeps == "history"

    def columns(self, *, of_table: bool = True) -> pa.Schema:
        """Return the columns to compare: raw columns, the operation, and the times of a history."""
        more = [pa.field(self.operation, pa.string())] if self.operation else []
        times = VALIDITY if of_table and self.is_history else ()
        return pa.schema([*ROW_SCHEMA, *more, *times])

    def run(self) -> CheckFindings:
        """Check the bucket's files and rows, and compare them with the replay if there is one."""
        found, replayed = CheckFindings(), self.replayed
        visible, hidden = _rows(self, self.visible, found), _rows(self, self.hidden, found)
        found.rows += visible.num_rows
        found.hash = (found.hash + changelog_hash(visible)) % MODULUS
        is_keyed = not visible.column("key").null_count + hidden.column("key").null_count
        changes = replayed.changes() if replayed else self.columns(of_table=False).empty_table()
        floors = replayed.floors if replayed else {}
        of_rows = (self.bucket, self.changelog.buckets, visible, hidden, self.operation)
        if self.is_history:
            found.of_files += history_contradictions(*of_rows)
            if is_keyed:
                if replayed:
                    _compare_values(visible, changes, floors, found.differences, self.operation)
                whole = replayed.whole if replayed else ()
                found.of_files += _history_problems(visible, hidden, changes, whole, self.operation)
        else:
            found.of_files += contradictions(*of_rows)
            if replayed and is_keyed:
                state = latest_changes(pa.concat_tables([visible, hidden]))
                compare(state, latest_changes(changes), floors, found.differences)
        return found


def _rows(task: BucketTask, files: Sequence[DataFile], found: CheckFindings) -> pa.Table:
    """Return the rows of files that can be read; problems are added to `found`."""
    empty = task.columns().empty_table()
    return pa.concat_tables([empty, *(_rows_of(task, one, found) for one in files)])


def _rows_of(task: BucketTask, file: DataFile, found: CheckFindings) -> pa.Table:
    names = task.columns().names
    typed = layout_of(task.schemas.get(file.path)).added
    layout = FileLayout((*typed, *(VALIDITY if task.is_history else ())))
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
                hash_of=lambda batch: changelog_hash(pa.Table.from_batches([batch])),
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
    if task.is_history:
        ended = rows.num_rows - rows.column(_TO).null_count
        if ended != (rows.num_rows if file.closed else 0):
            found.of_files.append(f"{file.path} mixes values that hold with others that have ended")
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


def history_contradictions(
    bucket: int,
    buckets: int,
    visible: pa.Table,
    hidden: pa.Table,
    operation: str | None = None,
) -> Iterator[str]:
    """Yield contradictions between the rows of a bucket of a history, without their times."""
    state = pa.concat_tables([visible, hidden])
    yield from _key_problems(bucket, buckets, state)
    if state.column("key").null_count:
        return
    if not holds(visible, operation).all() or holds(hidden, operation).any():
        yield f"bucket {bucket} shows deletions, or hides values"
    if not is_latest(hidden).all():
        yield f"bucket {bucket} hides two deletions of a key"
    if _once(state.select(["partition", "offset"])).num_rows < state.num_rows:
        yield f"bucket {bucket} holds a record twice"


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
    _compare_by(key_codes(pa.concat_tables([topic, state])), state, topic, floors, found)


def _compare_by(
    keys: Numbers,
    state: pa.Table,
    topic: pa.Table,
    floors: Mapping[int, int],
    found: DifferencesBy,
) -> None:
    """Compare rows with equal `keys`, which are unique on each side of a partition.

    `keys` has those of the topic's rows first, then those of the table's rows.
    """
    rows = pa.concat_tables([topic, state])
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


def _compare_values(
    visible: pa.Table,
    topic: pa.Table,
    floors: Mapping[int, int],
    found: DifferencesBy,
    operation: str | None,
) -> None:
    """Add differences between the values of a history and those of the topic to `found`."""
    values = topic.filter(pa.array(holds(topic, operation)))
    rows = visible.drop_columns([_FROM, _TO])
    places = integers(pa.concat_tables([values, rows]), "offset")
    _compare_by(places, rows, values, floors, found)


def _history_problems(
    visible: pa.Table,
    hidden: pa.Table,
    topic: pa.Table,
    whole: Collection[int],
    operation: str | None,
) -> Iterator[str]:
    """Yield problems in the validity times of a history's values.

    In the partitions `whole`, `topic` has all changes, and values must have exactly the times that
    follow from them. In other partitions, retention or compaction has removed changes. There a
    current value must be the last one of its key, other values must have an end, and no two values
    may overlap.
    """
    state = pa.concat_tables([visible, hidden])
    known = _once(pa.concat_tables([state.drop_columns([_FROM, _TO]), topic]))
    wanted = extended(nothing_yet(known.schema), known, operation)
    expected = pa.concat_tables([wanted.closed, wanted.open])
    yield from _time_problems(state, expected, whole, operation)
    yield from _overlaps(state)


def _once(changes: pa.Table) -> pa.Table:
    """Return one row for each partition and offset."""
    partitions, offsets = integers(changes, "partition"), integers(changes, "offset")
    order = np.lexsort((offsets, partitions))
    return changes.take(pa.array(order[ends_group(partitions[order], offsets[order])]))


def _time_problems(
    state: pa.Table, expected: pa.Table, whole: Collection[int], operation: str | None
) -> Iterator[str]:
    rows = pa.concat_tables([expected, state])
    partitions, offsets = integers(rows, "partition"), integers(rows, "offset")
    of_state = np.arange(rows.num_rows) >= expected.num_rows
    order = np.lexsort((of_state, offsets, partitions))
    partitions, offsets, of_state = partitions[order], offsets[order], of_state[order]
    starts, ends = _times(rows, _FROM)[order], _times(rows, _TO)[order]
    is_value = holds(rows, operation)[order]
    alone, first, second = _pairs(ends_group(partitions, offsets))
    exact = np.isin(partitions[second], list(whole))
    differs = (starts[first] != starts[second]) | (ends[first] != ends[second])
    holds_wrongly = (ends[first] == _HOLDS) != (ends[second] == _HOLDS)
    wrong = (differs & exact) | holds_wrongly | (starts[second] < starts[first])
    for what, at in (
        ("values that hold from or to other times than the topic says", second[wrong]),
        ("deletions that a later change outdates", np.flatnonzero(alone & of_state & ~is_value)),
        ("deletions that the table lacks", np.flatnonzero(alone & ~of_state & ~is_value)),
    ):
        if len(at):
            yield f"{what} {_named_places(rows.take(pa.array(order[at])))}"


def _overlaps(state: pa.Table) -> Iterator[str]:
    """Yield a line that names values of one key and partition whose times overlap."""
    keys, partitions = key_codes(state), integers(state, "partition")
    order = np.lexsort((integers(state, "offset"), partitions, keys))
    starts, ends = _times(state, _FROM)[order], _times(state, _TO)[order]
    is_last = ends_group(keys[order], partitions[order])
    wrong: Flags = ends < starts
    wrong[:-1] |= ~is_last[:-1] & (ends[:-1] > starts[1:])
    if wrong.any():
        yield f"values that overlap {_named_places(state.take(pa.array(order[wrong])))}"


def _times(rows: pa.Table, name: str) -> Numbers:
    """Return times in microseconds; a missing end sorts after all others."""
    found: Numbers = rows.column(name).cast(pa.int64()).fill_null(int(_HOLDS)).to_numpy()
    return found
