"""Checks a changelog table, and compares it with the records that its topic still has.

The topic is replayed into files of changes, and compared one bucket at a time, so that memory holds
only the changes of one task and the rows of one bucket. The files of changes are in a temporary
folder of this machine, or, if tasks run on Spark, among the table's own temporary files.
"""

import secrets
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.buckets import BucketTask, ReplayedBucket
from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.differences import Differences, named
from ottla.lake.check.files import FileFindings, checked_rows
from ottla.lake.check.ranges import spoilt_lines
from ottla.lake.check.report import CheckFindings, is_among
from ottla.lake.check.table_state import ComparedTopic, TableAsRead
from ottla.lake.job.reduce_task import Reduced, ReduceTask
from ottla.lake.job.spilled import FOLDER as WORK_FOLDER
from ottla.lake.job.spilled import path_stem, remove_work
from ottla.lake.job.task import explained_ledgers
from ottla.lake.job.workers import Workers
from ottla.lake.model.layout import DEAD
from ottla.lake.model.live import hidden_after
from ottla.lake.model.manifest import MOVES_POSITIONS, DataFile, Manifest
from ottla.lake.model.plan import Range, ranges
from ottla.lake.model.row_hash import MODULUS, ROW_KEY_BYTES, keyed_hash
from ottla.lake.rows.changelog_columns import columns_from, operations_only
from ottla.lake.source.cluster import Cluster
from ottla.lake.source.ledgers import account_of, may_be_compacted
from ottla.lake.store.local import LocalStore
from ottla.lake.store.store import FileStore

_OFFSETS_AT_ONCE = 2_000_000


def check_changelog(
    read: TableAsRead, cluster: Cluster | None, topic: ComparedTopic | None, run: Workers
) -> list[CheckFindings]:
    """Check a changelog table, and compare it with `topic` if that is given."""
    whole = CheckFindings()  # Findings that belong to no bucket.
    letters = _read_letters(read, whole)
    visible, hidden = _files_by_bucket(read, whole)
    if cluster is None or topic is None:
        return [whole, *run(_bucket_tasks(read, visible, hidden, None))]
    load_id = uuid.uuid4().hex
    with _place_of_work(read, run, load_id) as store:
        replay = _replay(read, letters, topic, run, store, load_id, whole.of_topic)
        found = [whole, *run(_bucket_tasks(read, visible, hidden, replay))]
    if replay is not None:
        _Comparison(cluster, topic, read.manifests, replay).add_to(whole, letters, found)
    return found


@dataclass(slots=True)
class _Letters:
    """The dead letters of a table. They are not applied as changes."""

    # By partition.
    offsets: dict[int, list[int]] = field(default_factory=dict)
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def hash_of(self, met: Mapping[int, Collection[int]], key: bytes) -> int:
        """Return the hash under `key` of the dead letters at the offsets `met`, by partition."""
        total = 0
        for batch in self.batches:
            partition = batch.column("partition")[0].as_py()
            offsets = pa.array(met.get(partition, ()), pa.int64())
            inside = pc.is_in(batch.column("offset"), offsets)
            total += keyed_hash(batch.filter(inside), key)
        return total % MODULUS


def _read_letters(read: TableAsRead, found: CheckFindings) -> _Letters:
    """Read the files of dead letters, which are few, and compare them with their manifests."""
    letters, store = _Letters(), read.table.store
    for file in (file for manifest in read.manifests for file in manifest.dead_letters):
        in_file = FileFindings()
        place = f"dead letters of partition {file.partition}"
        with DamagedFiles(store) as damaged:
            for batch in checked_rows(store, file, DEAD, damaged, in_file, place=place):
                offsets = batch.column("offset").to_pylist()
                letters.offsets.setdefault(file.partition, []).extend(offsets)
                letters.batches.append(batch)
        found.dead_letters += in_file.rows
        found.of_dead_letters += in_file.problems
    return letters


_ByBucket = Mapping[int, Sequence[DataFile]]


def _files_by_bucket(read: TableAsRead, found: CheckFindings) -> tuple[_ByBucket, _ByBucket]:
    """Return the live files with visible values, and the files with hidden rows, by bucket."""
    hidden: dict[str, DataFile] = {}
    for manifest in read.manifests:
        found.of_files += [
            f"the manifest of commit {manifest.version}: {problem}"
            for problem in hidden_after(hidden, manifest)
        ]
    visible_by, hidden_by = _by_bucket(read.live), _by_bucket(hidden.values())
    for files in (*visible_by.values(), *hidden_by.values()):
        if sum(not file.closed for file in files) > 1:
            found.of_files.append(f"bucket {files[0].partition} has two files")
    return visible_by, hidden_by


def _by_bucket(files: Iterable[DataFile]) -> dict[int, list[DataFile]]:
    found: dict[int, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.partition, []).append(file)
    return found


@dataclass(frozen=True, slots=True)
class _Replay:
    """Changes of the topic, by bucket, in files of changes."""

    store: FileStore
    parts: Sequence[Reduced]
    # By partition: the offset at which the table began to read, and the range that was replayed.
    # If the start is above the begin, the log no longer has the first records.
    begins: Mapping[int, int]
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    # The key under which dead letters were hashed.
    key: bytes = field(repr=False)

    def whole(self) -> set[int]:
        """Return the partitions whose records were all replayed, from the table's start on."""
        ledgers = [part.ledger for part in self.parts]
        gone = {
            one.partition
            for one in ledgers
            if one.loaded + one.keyless + one.dead_letters + one.control + one.aborted
            < one.end - one.start
        }
        return {p for p, start in self.starts.items() if start == self.begins.get(p)} - gone


def _bucket_tasks(
    read: TableAsRead, visible: _ByBucket, hidden: _ByBucket, replay: _Replay | None
) -> list[BucketTask]:
    """Return a task for each bucket. It compares the rows with `replay`, if given."""
    newest = read.manifests[-1]
    assert newest.changelog is not None
    columns = columns_from(newest.table_schema)
    schemas = {
        file.path: manifest.table_schema
        for manifest in read.manifests
        for file in (*manifest.files, *manifest.hidden)
        if manifest.table_schema is not None
    }
    whole = tuple(replay.whole()) if replay else ()
    pieces: dict[int, dict[str, list[int]]] = {}
    for part in replay.parts if replay else ():
        for piece in part.pieces:
            pieces.setdefault(piece.bucket, {}).setdefault(part.path, []).append(piece.number)
    tasks = []
    for bucket in range(newest.changelog.buckets):
        shown, unseen = visible.get(bucket, ()), hidden.get(bucket, ())
        paths = [file.path for file in (*shown, *unseen)]
        replayed = None
        if replay is not None:
            of_bucket = pieces.get(bucket, {}).items()
            replayed = ReplayedBucket(
                replay.store,
                tuple((path, tuple(numbers)) for path, numbers in of_bucket),
                replay.starts,
                whole,
                operations_only(columns).schema,
            )
        tasks.append(
            BucketTask(
                bucket=bucket,
                store=read.table.store,
                topic=newest.topic,
                changelog=newest.changelog,
                visible=shown,
                hidden=unseen,
                schemas={path: schemas[path] for path in paths if path in schemas},
                operation=columns.operation,
                bounds=read.bounds.of(paths),
                replayed=replayed,
            )
        )
    return tasks


@contextmanager
def _place_of_work(read: TableAsRead, run: Workers, load_id: str) -> Iterator[FileStore]:
    """Yield a store for files of changes, and remove these files on exit."""
    if run.are_here:
        with TemporaryDirectory(prefix="ottla-verify-") as folder:
            Path(folder, WORK_FOLDER).mkdir(parents=True)
            yield LocalStore(Path(folder))
        return
    store, running = read.table.store, read.table.running
    try:
        with running.mark(load_id):
            yield store
    finally:
        remove_work(store, running, load_id)


def _replay(
    read: TableAsRead,
    letters: _Letters,
    topic: ComparedTopic,
    run: Workers,
    store: FileStore,
    load_id: str,
    problems: list[str],
) -> _Replay | None:
    """Read each partition again, from its start to the table's position.

    Returns None, and adds a problem to `problems`, if the topic cannot be read. Raises OttlaError.
    """
    newest = read.manifests[-1]
    assert newest.changelog is not None
    ends = dict(newest.positions)
    begins: dict[int, int] = {}
    for manifest in read.manifests:
        for ledger in manifest.ledgers if manifest.kind in MOVES_POSITIONS else ():
            begins.setdefault(ledger.partition, ledger.start)
    starts = {
        partition: min(
            end, max(begins.get(partition, 0), topic.described.bounds[partition].log_start)
        )
        for partition, end in ends.items()
    }
    # A new random key, so that rows cannot have been forged to have the same hash.
    key = secrets.token_bytes(ROW_KEY_BYTES)
    tasks = [
        ReduceTask(
            wanted=wanted,
            size_bytes=wanted.end - wanted.start,
            bootstrap=topic.bootstrap,
            compacted=topic.has_holes,
            store=store,
            path=path_stem(load_id, wanted.partition, wanted.start),
            changelog=newest.changelog,
            on_null_key="skip",
            skip_unreadable=True,
            null_bad_timestamps=True,
            columns=operations_only(columns_from(newest.table_schema)),
            left_out_key=key,
            left_out=tuple(
                offset
                for offset in letters.offsets.get(wanted.partition, ())
                if wanted.start <= offset < wanted.end
            ),
            is_replay=True,
        )
        for wanted in ranges(newest.topic, starts, ends, offsets_max=_OFFSETS_AT_ONCE)
    ]
    try:
        return _Replay(store, run(tasks), begins, starts, ends, key)
    except OttlaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        problems.append(error.message)
        return None


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares the table with the replayed topic as a whole, after its buckets."""

    cluster: Cluster
    topic: ComparedTopic
    manifests: Sequence[Manifest]
    replay: _Replay

    def add_to(
        self, whole: CheckFindings, letters: _Letters, found: Sequence[CheckFindings]
    ) -> None:
        """Add the differences of the buckets in `found` to `whole`, summed up by partition."""
        whole.ledgers += [part.ledger for part in self.replay.parts]
        whole.of_topic += self._unlike_loads()
        whole.of_topic += self._unlike_letters(letters)
        sums: dict[int, Differences] = {}
        for one in found:
            for partition, differences in one.differences.items():
                sums.setdefault(partition, Differences()).add(differences)
        for partition, differences in sorted(sums.items()):
            extra = self._unexplained(partition, differences.extra)
            whole.compared += differences.compared
            whole.only_in_lake += differences.below_start + len(differences.extra) - len(extra)
            differences.extra = extra
            whole.of_topic += differences.of_changes(self._place(partition))

    def _place(self, partition: int) -> str:
        return f"{self.topic.described.topic}-{partition}"

    def _unlike_loads(self) -> list[str]:
        """Return problems of ledgers that do not balance, and of batches that loads could read.

        Such a batch was read by the loads, and cannot be read now.
        """
        described = self.topic.described
        parts = self.replay.parts
        problems = [
            f"{self._place(ledger.partition)} of the topic does not add up: {ledger}"
            for ledger in explained_ledgers(parts, described, self.topic.bootstrap)
            if not ledger.balances
        ]
        known = [one for manifest in self.manifests for one in manifest.skipped]
        spoilt = [one for part in parts for one in part.skipped if not is_among(one, known)]
        return problems + spoilt_lines(described.topic, spoilt)

    def _unlike_letters(self, letters: _Letters) -> Iterator[str]:
        """Yield how dead letters differ from the topic's records, apart from compacted records."""
        replay, met = self.replay, dict[int, list[int]]()
        for part in replay.parts:
            met.setdefault(part.ledger.partition, []).extend(part.left_out)
        replayed_hash = sum(part.left_out_hash for part in replay.parts) % MODULUS
        if replayed_hash != letters.hash_of(met, replay.key):
            yield f"the dead letters differ from the records of {self.topic.described.topic}"
        for partition, offsets in sorted(letters.offsets.items()):
            wanted = {one for one in offsets if one >= replay.starts.get(partition, 0)}
            extra = self._unexplained(partition, sorted(wanted.difference(met.get(partition, ()))))
            if extra:
                yield (
                    f"{self._place(partition)}: dead letters that are no records of the topic: "
                    f"{named(extra)}"
                )

    def _unexplained(self, partition: int, extra: list[int]) -> list[int]:
        """Return `extra`, offsets that the topic lacks, unless compaction explains them."""
        if not extra:
            return []
        described = self.topic.described
        wanted = Range(described.topic, partition, 0, self.replay.ends[partition])
        account = account_of(self.cluster, wanted) if described.has_ledger else None
        is_explained = may_be_compacted(self.cluster, described, partition, account, len(extra))
        return [] if is_explained else extra
