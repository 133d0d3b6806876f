"""Derives the proof of a changelog table again: from its files, and by a replay of the topic.

files   have the bytes, columns and rows that their manifests hash
state   has each key of a partition once, shows the latest change of each key, hides the others
topic   each row is the record at its offset; no key has a later record below the table's position;
        no key is missing

The replay goes through files of changes in a temporary folder of this machine, and compares one
bucket at a time: memory holds the changes of one task and the rows of one bucket.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import pyarrow as pa

from ottla.lake.changelogs.comparing import Differences, compare, contradictions
from ottla.lake.changelogs.comparing_history import compare_history, history_contradictions
from ottla.lake.changelogs.history import VALIDITY
from ottla.lake.changelogs.interval_files import changelog_hash, schema_of
from ottla.lake.changelogs.latest import latest_changes
from ottla.lake.changelogs.reducing import Reduced, ReduceJob, reduce_range, reduced_from_text
from ottla.lake.changelogs.spilled import read_pieces
from ottla.lake.decode.layout import RAW, FileLayout
from ottla.lake.folder.damaged_files import DamagedFiles
from ottla.lake.folder.file_check import FileUnreadable, check_bytes
from ottla.lake.folder.log_bounds import NO_BOUNDS, LogBounds
from ottla.lake.manifest import Changelog, DataFile
from ottla.lake.plan import Range, ranges
from ottla.lake.row_hash import MODULUS, hash_text
from ottla.lake.schema import ROW_SCHEMA
from ottla.lake.stores.local import LocalStore
from ottla.lake.stores.store import FileStore

_OFFSETS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class ChangelogFiles:
    """The files of a changelog table that count, by bucket."""

    store: FileStore
    topic: str
    changelog: Changelog
    visible: Mapping[int, Sequence[DataFile]]
    hidden: Mapping[int, Sequence[DataFile]]
    bounds: LogBounds = NO_BOUNDS


@dataclass(slots=True)
class ChangelogFindings:
    """What a changelog table holds, and what is wrong with it."""

    rows: int = 0
    hash: int = 0
    differences: Differences = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplayedTopic:
    """Changes of the topic, by bucket, in a folder of this machine."""

    store: FileStore
    parts: Sequence[Reduced]
    floors: Mapping[int, int]
    # Where the table began to read.
    begins: Mapping[int, int]

    def bucket(self, number: int) -> pa.Table:
        """The changes of a bucket, for a table of latest values the latest of each task."""
        batches = [
            batch
            for part in self.parts
            for batch in read_pieces(
                self.store,
                part.path,
                [piece.number for piece in part.pieces if piece.bucket == number],
            )
        ]
        return pa.Table.from_batches(batches, ROW_SCHEMA)

    def whole(self) -> set[int]:
        """Partitions of which every record was replayed that a table has read since its start."""
        gone = {
            part.read.ledger.partition
            for part in self.parts
            if part.read.ledger.loaded
            + part.read.ledger.keyless
            + part.read.ledger.control
            + part.read.ledger.aborted
            < part.read.ledger.end - part.read.ledger.start
        }
        return {p for p, floor in self.floors.items() if floor == self.begins.get(p)} - gone


def verify_changelog(
    files: ChangelogFiles, replay: ReplayedTopic | None, on_file: Callable[[str], None]
) -> ChangelogFindings:
    """Check each bucket's files and rows, and compare it with `replay` where that is given."""
    found = ChangelogFindings()
    whole = replay.whole() if replay else set()
    for bucket in range(files.changelog.buckets):
        visible = _rows(files, bucket, files.visible, found, on_file)
        found.rows += visible.num_rows
        found.hash = (found.hash + changelog_hash(visible)) % MODULUS
        hidden = _rows(files, bucket, files.hidden, found, on_file)
        keyed = not visible.column("key").null_count + hidden.column("key").null_count
        topic = replay.bucket(bucket) if replay else ROW_SCHEMA.empty_table()
        floors = replay.floors if replay else {}
        if files.changelog.keeps == "history":
            found.problems += history_contradictions(
                bucket, files.changelog.buckets, visible, hidden
            )
            if keyed:
                differences = found.differences if replay else {}
                found.problems += compare_history(
                    visible, hidden, topic, floors, whole, differences
                )
            continue
        found.problems += contradictions(bucket, files.changelog.buckets, visible, hidden)
        if replay is not None and keyed:
            state = latest_changes(pa.concat_tables([visible, hidden]))
            compare(state, latest_changes(topic), floors, found.differences)
    return found


def _rows(
    files: ChangelogFiles,
    bucket: int,
    by_bucket: Mapping[int, Sequence[DataFile]],
    found: ChangelogFindings,
    on_file: Callable[[str], None],
) -> pa.Table:
    """The rows of a bucket's files, as far as they can be read."""
    rows: list[pa.Table] = [schema_of(files.changelog.keeps).empty_table()]
    for file in by_bucket.get(bucket, ()):
        on_file(file.path)
        rows.append(_rows_of(files, file, found))
    return pa.concat_tables(rows)


def _rows_of(files: ChangelogFiles, file: DataFile, found: ChangelogFindings) -> pa.Table:
    schema = schema_of(files.changelog.keeps)
    empty: pa.Table = schema.empty_table()
    try:
        changed = check_bytes(files.store, file)
        layout = FileLayout(VALIDITY) if files.changelog.keeps == "history" else RAW
        with DamagedFiles(files.store) as damaged:
            if changed:
                found.problems += changed
                damaged.add(file.path, layout)
            rows = pa.Table.from_batches(damaged.batches(file.path, layout), schema)
        found.problems += [] if changed else files.bounds.problems(files.store, file)
    except FileNotFoundError:
        found.problems.append(
            f"{file.path} is missing: {file.rows} rows of bucket {file.partition}"
        )
        return empty
    except OSError as error:
        found.problems.append(f"{file.path} can't be read: {error}")
        return empty
    except FileUnreadable as error:
        found.problems.append(f"{file.path} {error}")
        return empty
    counted = rows.num_rows, hash_text(changelog_hash(rows))
    if counted != (file.rows, file.hash):
        found.problems.append(
            f"{file.path} holds {counted[0]} rows with hash {counted[1]}; its manifest says "
            f"{file.rows} rows with hash {file.hash}"
        )
    if files.changelog.keeps == "history":
        ended = rows.num_rows - rows.column("valid_to").null_count
        if ended != (rows.num_rows if file.closed else 0):
            found.problems.append(f"{file.path} mixes values that hold with others that have ended")
    if set(rows.column("topic").unique().to_pylist()) - {files.topic}:
        found.problems.append(f"{file.path} holds rows of another topic")
    return rows


class Replaying:
    """Reads a topic again into a temporary folder, which goes when the context is left."""

    def __init__(self, files: ChangelogFiles, bootstrap: str, has_gaps: bool) -> None:
        self._files = files
        self._bootstrap = bootstrap
        self._has_gaps = has_gaps
        self._folder = TemporaryDirectory(prefix="ottla-verify-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def replay(
        self, begins: Mapping[int, int], starts: Mapping[int, int], ends: Mapping[int, int]
    ) -> ReplayedTopic:
        """Read each partition from its start to its end. Raises OttlaError.

        The table began to read at `begins`; at a later start the log does not reach back to that.
        """
        planned = ranges(self._files.topic, starts, ends, offsets_max=_OFFSETS_AT_ONCE, tasks_min=1)
        store = LocalStore(Path(self._folder.name))
        parts = [reduced_from_text(reduce_range(self._job(one, store))) for one in planned]
        return ReplayedTopic(store, parts, starts, begins)

    def _job(self, wanted: Range, store: FileStore) -> ReduceJob:
        return ReduceJob(
            wanted=wanted,
            bootstrap=self._bootstrap,
            compacted=self._has_gaps,
            store=store,
            path=f"p{wanted.partition}-{wanted.start}",
            changelog=self._files.changelog,
            on_null_key="skip",
            skip_unreadable=True,
            null_bad_timestamps=True,
        )
