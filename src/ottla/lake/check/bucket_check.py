"""Checks one bucket of a changelog table: its files against their manifests and a replay.

Runs in the process of `verify` or in a task of Spark, with the same findings.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.file_findings import FileFindings, checked_rows
from ottla.lake.check.findings import CheckFindings
from ottla.lake.check.history_comparison import compare_history, history_contradictions
from ottla.lake.check.latest_comparison import compare, contradictions
from ottla.lake.check.log_bounds import NO_BOUNDS, LogBounds
from ottla.lake.job.merge_task import changelog_hash
from ottla.lake.job.spilled import read_pieces
from ottla.lake.model.layout import FileLayout, layout_of
from ottla.lake.model.manifest import Changelog, DataFile, TableSchema
from ottla.lake.model.row_hash import MODULUS
from ottla.lake.model.schema import ROW_SCHEMA, VALIDITY
from ottla.lake.rows.key_changes import latest_changes
from ottla.lake.rows.proof_rows import TypedCheck
from ottla.lake.store.store import FileStore


@dataclass(frozen=True, slots=True)
class ReplayedBucket:
    """The replayed changes of one bucket: files of changes, and the pieces in them."""

    store: FileStore
    pieces: Sequence[tuple[str, Sequence[int]]]
    # The offset at which each partition's replay begins, and the partitions replayed completely.
    floors: Mapping[int, int]
    whole: Collection[int]
    schema: pa.Schema = ROW_SCHEMA

    def changes(self) -> pa.Table:
        """Return the changes; for a table of latest values, the latest of each task."""
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
    # The typed columns of each file that has some, by its path.
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    # The column that says which rows are deletions (`typed.holds`).
    operation: str | None = None
    bounds: LogBounds = NO_BOUNDS
    # None: compare the files with their manifests only.
    replayed: ReplayedBucket | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in (*self.visible, *self.hidden))

    @property
    def offsets(self) -> int:
        return 0

    def run(self) -> CheckFindings:
        """Check the bucket, and compare it with the replay if there is one."""
        return check_bucket(self)


def check_bucket(job: BucketTask) -> CheckFindings:
    """Check the bucket's files and rows, and compare it with the replay if there is one."""
    found = CheckFindings()
    visible = _rows(job, job.visible, found)
    found.rows += visible.num_rows
    found.hash = (found.hash + changelog_hash(visible)) % MODULUS
    hidden = _rows(job, job.hidden, found)
    keyed = not visible.column("key").null_count + hidden.column("key").null_count
    replayed, buckets, operation = job.replayed, job.changelog.buckets, job.operation
    topic = replayed.changes() if replayed else None
    floors = replayed.floors if replayed else {}
    if job.changelog.keeps == "history":
        found.of_files += history_contradictions(job.bucket, buckets, visible, hidden, operation)
        if keyed:
            differences = found.differences if replayed else {}
            changes = _columns(job, False).empty_table() if topic is None else topic
            whole = replayed.whole if replayed else ()
            found.of_files += compare_history(
                visible, hidden, changes, floors, whole, differences, operation
            )
        return found
    found.of_files += contradictions(job.bucket, buckets, visible, hidden, operation)
    if topic is not None and keyed:
        state = latest_changes(pa.concat_tables([visible, hidden]))
        compare(state, latest_changes(topic), floors, found.differences)
    return found


def _columns(job: BucketTask, is_state: bool = True) -> pa.Schema:
    """Return the columns to compare: the raw ones, the operation, and the times of a history."""
    more = [pa.field(job.operation, pa.string())] if job.operation else []
    times = VALIDITY if is_state and job.changelog.keeps == "history" else ()
    return pa.schema([*ROW_SCHEMA, *more, *times])


def _rows(job: BucketTask, files: Sequence[DataFile], found: CheckFindings) -> pa.Table:
    """Return the rows of files, as far as they can be read."""
    schema = _columns(job)
    return pa.concat_tables([schema.empty_table(), *(_rows_of(job, one, found) for one in files)])


def _rows_of(job: BucketTask, file: DataFile, found: CheckFindings) -> pa.Table:
    schema = _columns(job)
    is_history = job.changelog.keeps == "history"
    typed = layout_of(job.schemas.get(file.path)).added
    layout = FileLayout((*typed, *(VALIDITY if is_history else ())))
    in_file = FileFindings()
    with DamagedFiles(job.store) as damaged:
        rows = pa.Table.from_batches(
            checked_rows(
                job.store,
                file,
                layout,
                damaged,
                in_file,
                place=f"bucket {file.partition}",
                hash_of=lambda batch: changelog_hash(pa.Table.from_batches([batch])),
            ),
            layout.schema,
        )
    found.of_files += in_file.problems or job.bounds.problems(job.store, file)
    _check_rows(job, file, rows, found)
    for name in schema.names:
        # A file has no such column if no row had a value when it was written.
        if name not in rows.schema.names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    return rows.select(schema.names)


def _check_rows(job: BucketTask, file: DataFile, rows: pa.Table, found: CheckFindings) -> None:
    if job.changelog.keeps == "history":
        ended = rows.num_rows - rows.column("valid_to").null_count
        if ended != (rows.num_rows if file.closed else 0):
            found.of_files.append(f"{file.path} mixes values that hold with others that have ended")
    if set(rows.column("topic").unique().to_pylist()) - {job.topic}:
        found.of_files.append(f"{file.path} holds rows of another topic")
    schema = job.schemas.get(file.path)
    if schema is not None:
        problems = TypedCheck(schema).of_own_rows(rows.to_batches())
        found.of_files += [f"{file.path}: {problem}" for problem in problems]
