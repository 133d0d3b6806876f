"""Replays the topic of a changelog table by buckets, to compare the table with it.

files   have the bytes, columns and rows that their manifests hash
state   has each key of a partition once, shows the latest change of each key, hides the others
topic   each row is the record at its offset; no key has a later record below the table's position;
        no key is missing

The replay goes through files of changes, and compares one bucket at a time: memory holds the
changes of one task and the rows of one bucket. They lie in a temporary folder of this machine, or,
where tasks of Spark read and compare, among the table's own files of work.
"""

import secrets
import uuid
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from ottla.lake.check.bucket_check import BucketTask, ReplayedBucket
from ottla.lake.check.log_bounds import NO_BOUNDS, LogBounds
from ottla.lake.job.reduce_task import Reduced, ReduceTask
from ottla.lake.job.spilled import FOLDER as WORK_FOLDER
from ottla.lake.job.spilled import path_stem, remove_work
from ottla.lake.job.workers import Workers
from ottla.lake.model.manifest import Changelog, DataFile, TableSchema
from ottla.lake.model.plan import Range, ranges
from ottla.lake.model.row_hash import ROW_KEY_BYTES
from ottla.lake.rows.changelog_columns import columns_from, operations_only
from ottla.lake.source.access import Bootstrap
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore
from ottla.lake.tables.markers import RunningLoads

_OFFSETS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class ChangelogFiles:
    """The live files of a changelog table, by bucket."""

    store: FileStore
    running: RunningLoads
    topic: str
    changelog: Changelog
    visible: Mapping[int, Sequence[DataFile]]
    hidden: Mapping[int, Sequence[DataFile]]
    # The typed columns of the table, and of each file that has some.
    schema: TableSchema | None = None
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    # Offsets of dead letters, by partition: they are not applied as changes.
    left_out: Mapping[int, Sequence[int]] = field(default_factory=dict)
    bounds: LogBounds = NO_BOUNDS


@dataclass(frozen=True, slots=True)
class ReplayedTopic:
    """Changes of the topic, by bucket, in files of changes."""

    store: FileStore
    parts: Sequence[Reduced]
    floors: Mapping[int, int]
    # By partition: the offset at which the table began to read.
    begins: Mapping[int, int]
    # The key under which dead letters were hashed.
    key: bytes = field(repr=False)

    def whole(self) -> set[int]:
        """Return the partitions whose records were all replayed, from the table's start on."""
        gone = {
            part.ledger.partition
            for part in self.parts
            if part.ledger.loaded
            + part.ledger.keyless
            + part.ledger.dead_letters
            + part.ledger.control
            + part.ledger.aborted
            < part.ledger.end - part.ledger.start
        }
        return {p for p, floor in self.floors.items() if floor == self.begins.get(p)} - gone


def bucket_tasks(files: ChangelogFiles, replay: ReplayedTopic | None) -> list[BucketTask]:
    """Return a task for each bucket. It compares the rows with `replay`, if given."""
    columns = columns_from(files.schema)
    whole = replay.whole() if replay else set()
    pieces: dict[int, dict[str, list[int]]] = {}
    for part in replay.parts if replay else ():
        for piece in part.pieces:
            pieces.setdefault(piece.bucket, {}).setdefault(part.path, []).append(piece.number)
    paths = {
        bucket: [file.path for by in (files.visible, files.hidden) for file in by.get(bucket, ())]
        for bucket in range(files.changelog.buckets)
    }
    return [
        BucketTask(
            bucket=bucket,
            store=files.store,
            topic=files.topic,
            changelog=files.changelog,
            visible=files.visible.get(bucket, ()),
            hidden=files.hidden.get(bucket, ()),
            schemas={path: files.schemas[path] for path in paths[bucket] if path in files.schemas},
            operation=columns.operation,
            bounds=LogBounds(
                files.bounds.kind,
                {p: files.bounds.files[p] for p in paths[bucket] if p in files.bounds.files},
            ),
            replayed=ReplayedBucket(
                replay.store,
                tuple((path, tuple(numbers)) for path, numbers in pieces.get(bucket, {}).items()),
                replay.floors,
                tuple(whole),
                operations_only(columns).schema,
            )
            if replay
            else None,
        )
        for bucket in range(files.changelog.buckets)
    ]


class Replaying:
    """Reads a topic again into files of changes, which are removed when the context is left."""

    def __init__(
        self, files: ChangelogFiles, bootstrap: Bootstrap, has_gaps: bool, run: Workers
    ) -> None:
        self._files = files
        self._bootstrap = bootstrap
        self._has_gaps = has_gaps
        self._run = run
        self._folder: TemporaryDirectory[str] | None = None
        self._load_id = uuid.uuid4().hex
        # Drawn now, so that no rows of the table can have been made to fit it.
        self._key = secrets.token_bytes(ROW_KEY_BYTES)
        self._columns = operations_only(columns_from(files.schema))

    def __enter__(self) -> Self:
        if self._run.are_here:
            self._folder = TemporaryDirectory(prefix="ottla-verify-")
            Path(self._folder.name, WORK_FOLDER).mkdir(parents=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()
        else:
            remove_work(self._files.store, self._files.running, self._load_id)

    def replay(
        self, begins: Mapping[int, int], starts: Mapping[int, int], ends: Mapping[int, int]
    ) -> ReplayedTopic:
        """Read each partition from its start to its end. Raises OttlaError.

        The table began to read at `begins`; a start above that means that the log no longer reaches
        back so far.
        """
        planned = ranges(self._files.topic, starts, ends, offsets_max=_OFFSETS_AT_ONCE, tasks_min=1)
        store = LocalStore(Path(self._folder.name)) if self._folder else self._files.store
        with nullcontext() if self._folder else self._files.running.mark(self._load_id):
            parts = self._run([self._task(one, store) for one in planned])
        return ReplayedTopic(store, parts, starts, begins, self._key)

    def _task(self, wanted: Range, store: FileStore) -> ReduceTask:
        left_out = self._files.left_out.get(wanted.partition, ())
        return ReduceTask(
            wanted=wanted,
            size_bytes=wanted.end - wanted.start,
            bootstrap=self._bootstrap,
            compacted=self._has_gaps,
            store=store,
            path=path_stem(self._load_id, wanted.partition, wanted.start),
            changelog=self._files.changelog,
            on_null_key="skip",
            skip_unreadable=True,
            null_bad_timestamps=True,
            columns=self._columns,
            left_out_key=self._key,
            left_out=tuple(one for one in left_out if wanted.start <= one < wanted.end),
            is_replay=True,
        )
