"""Checks a table of rows: its files against their manifests, and its rows against the topic.

Each task checks an offset range of a partition and its files. Tasks run in the driver's process or
on Spark, with the same findings.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.differences import Differences, compared, hashes_of, named, sum_of
from ottla.lake.check.files import NO_BOUNDS, HeldFile, LogBounds, check_file, exists, rows_of
from ottla.lake.check.foreign_files import read_foreign
from ottla.lake.check.report import CheckFindings, is_among
from ottla.lake.check.table_state import ComparedTopic, TableAsRead
from ottla.lake.job.workers import Workers
from ottla.lake.model.layout import buckets_of_table, layout_of
from ottla.lake.model.live import left_out, live_after, live_letters, ranges_with_files
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema
from ottla.lake.model.plan import SPLIT_BYTES, Range
from ottla.lake.model.row_hash import ROW_KEY_BYTES
from ottla.lake.rows.proof_rows import TypedCheck
from ottla.lake.source.cluster import Cluster, connect
from ottla.lake.source.ledgers import (
    account_of,
    elections_at,
    judged,
    may_be_compacted,
    skipped_lines,
    totals_of,
)
from ottla.lake.source.reader import read_range
from ottla.lake.store.store import FileStore
from ottla.ledger.partition import PartitionLedger, RangeAccount, Unreadable

# Rows of this many offsets are compared at a time, to limit memory.
_WINDOW_OFFSETS = 500_000
_read = partial(
    # A load may have skipped unreadable batches and set invalid timestamps to null, so a check
    # does the same.
    read_range,
    skip_unreadable=True,
    null_bad_timestamps=True,
)


def check_ranges(
    read: TableAsRead, _cluster: Cluster | None, topic: ComparedTopic | None, run: Workers
) -> list[CheckFindings]:
    """Check a table of rows, and compare it with `topic` if that is given."""
    table, newest, others = read.table, read.manifests[-1], read.agreement.others
    layout, buckets = layout_of(newest.table_schema), buckets_of_table(newest)
    foreign = read_foreign(table.store, others, newest.topic, layout, buckets)
    gone = {file.path for file in others.gone}
    tasks = plan_tasks(
        table.store,
        read.manifests,
        [file for file in read.live if file.path not in gone],
        foreign.files,
        compared=topic,
        bounds=read.bounds,
    )
    of_foreign = CheckFindings(
        rows=foreign.rows,
        hash=foreign.hash,
        replaced=foreign.replaced,
        of_files=foreign.problems,
    )
    return [of_foreign, *run(tasks)]


@dataclass(frozen=True, slots=True)
class RangeCheck:
    """A task to check an offset range of a partition and its files. Can be pickled."""

    store: FileStore
    topic: str
    # None for a file outside the ranges of all loads, which is not compared with the topic.
    wanted: Range | None
    files: tuple[HeldFile, ...]
    # Ranges of the partition that loads left out as unreadable.
    skipped: tuple[Unreadable, ...] = ()
    # If None, the files are only compared with their manifests.
    compared: ComparedTopic | None = None

    @property
    def size_bytes(self) -> int:
        return sum(held.file.size_bytes for held in self.files)

    @property
    def offsets(self) -> int:
        return 0

    def run(self) -> CheckFindings:
        """Check the files, and compare the range with the topic. Raises OttlaError."""
        with DamagedFiles(self.store) as damaged:
            if self.compared is None:
                return _RangeCheck(self, damaged).run()
            with closing(connect(self.compared.bootstrap)) as cluster:
                topic = _TopicRecords(cluster, self.compared)
                return _RangeCheck(self, damaged, topic).run()


def plan_tasks(
    store: FileStore,
    manifests: Sequence[Manifest],
    live: Sequence[DataFile],
    foreign: Sequence[DataFile],
    *,
    compared: ComparedTopic | None = None,
    bounds: LogBounds = NO_BOUNDS,
    split_bytes: int = SPLIT_BYTES,
) -> list[RangeCheck]:
    """Return tasks that check each of `live` once, and compare all ranges that were loaded.

    `foreign` are files of other programs, one entry for each partition. They were read already, so
    tasks only check their typed columns, and compare their rows with the topic. A task has more
    than `split_bytes` of files only if it has a single file or its files overlap.
    """
    newest = manifests[-1]
    schemas: dict[str, TableSchema | None] = {
        file.path: manifest.table_schema for manifest in manifests for file in manifest.files
    }
    buckets = buckets_of_table(newest)
    replaced = _replaced(manifests, live, schemas) if foreign else {}
    rest = {
        file.path: HeldFile(
            file, schemas[file.path], bounds=bounds.of([file.path]), buckets=buckets
        )
        for file in live
    }
    dead = {file.path: HeldFile(file, is_dead=True) for file in live_letters(manifests)}
    skipped: dict[int, list[Unreadable]] = {}
    for one in left_out(manifests):
        skipped.setdefault(one.partition, []).append(one)
    tasks: list[RangeCheck] = []
    for of_loads, of_range in ranges_with_files(manifests, [*live, *foreign]):
        for wanted, files in _pieces(of_loads, of_range, split_bytes):
            at = wanted.partition
            held = [
                rest.pop(file.path)
                if file.path in rest
                else HeldFile(file, newest.table_schema, replaces=tuple(replaced.get(at, ())))
                for file in files
            ]
            letters = [
                path
                for path, one in dead.items()
                if one.file.partition == at and wanted.start <= one.file.start < wanted.end
            ]
            held += [dead.pop(path) for path in letters]
            left = tuple(skipped.get(at, ()))
            tasks.append(RangeCheck(store, newest.topic, wanted, tuple(held), left, compared))
    alone = (*rest.values(), *dead.values())
    return [
        *tasks,
        *(RangeCheck(store, newest.topic, None, (one,), (), compared) for one in alone),
    ]


def _replaced(
    manifests: Sequence[Manifest],
    live: Sequence[DataFile],
    schemas: Mapping[str, TableSchema | None],
) -> dict[int, list[tuple[DataFile, TableSchema | None]]]:
    """Return, by partition, the loads' files that other programs replaced, with their schemas."""
    counted: dict[str, DataFile] = {}
    for manifest in manifests:
        live_after(counted, manifest)
    found: dict[int, list[tuple[DataFile, TableSchema | None]]] = {}
    for path in counted.keys() - {file.path for file in live}:
        file = counted[path]
        found.setdefault(file.partition, []).append((file, schemas[path]))
    return found


def _pieces(
    wanted: Range, files: Sequence[DataFile], split_bytes: int
) -> Iterator[tuple[Range, Sequence[DataFile]]]:
    """Cut a range into pieces of about `split_bytes`, between files that do not overlap."""
    start, first, size, behind = wanted.start, 0, 0, wanted.start
    for place, file in enumerate(files):
        is_full = size > 0 and size + file.size_bytes > split_bytes
        if is_full and start < behind <= file.start < wanted.end:
            yield replace(wanted, start=start, end=file.start), files[first:place]
            start, first, size = file.start, place, 0
        size += file.size_bytes
        behind = max(behind, file.end)
    yield replace(wanted, start=start), files[first:]


@dataclass(frozen=True, slots=True)
class _TopicRecords:
    """Reads the topic for a task."""

    cluster: Cluster
    compared: ComparedTopic

    def rows(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range, in which offsets may be missing."""
        account = RangeAccount(wanted.partition, wanted.start, wanted.end, True)
        return _read(wanted, self.cluster, account)

    def kept(self, wanted: Range) -> Range:
        """Return the part of a range from the log start offset on."""
        log_start = self.compared.described.bounds[wanted.partition].log_start
        return replace(wanted, start=min(wanted.end, max(wanted.start, log_start)))


class _RangeCheck:
    """The check of one task. Without a topic it only checks files."""

    def __init__(
        self, task: RangeCheck, damaged: DamagedFiles, topic: _TopicRecords | None = None
    ) -> None:
        self._task = task
        self._damaged = damaged
        self._topic = topic
        self._typed: dict[str, TypedCheck] = {}
        self._found = CheckFindings()

    def run(self) -> CheckFindings:
        """Check each file, and compare the range with the topic. Raises OttlaError."""
        task, found = self._task, self._found
        own = [held for held in task.files if not held.is_foreign]
        for held in own:
            self._check_file(held)
        if self._topic is not None:
            if task.wanted is not None:
                self._compare(task.wanted, self._topic)
            for held in own:
                if held.schema is not None:
                    file = held.file
                    everything = Range(task.topic, file.partition, file.start, file.end)
                    problems = self._decoded_again(held, held.schema, everything)
                    found.of_typed += [f"{file.path}: {problem}" for problem in problems]
        for held in task.files:
            if held.is_foreign:
                found.of_typed += self._foreign_problems(held)
        return found

    def _rows(self, files: Sequence[HeldFile], wanted: Range) -> Iterator[pa.RecordBatch]:
        return rows_of(self._task.store, files, wanted, self._damaged)

    def _check_file(self, held: HeldFile) -> None:
        task, found = self._task, self._found
        in_file = check_file(
            task.store, held.file, task.topic, held.layout, self._damaged, held.buckets
        )
        if held.is_dead:
            found.dead_letters += in_file.rows
            found.of_dead_letters += in_file.problems
        else:
            found.rows += in_file.rows
            found.hash += in_file.hash
            found.of_files += in_file.problems or held.bounds.problems(task.store, held.file)

    def _decoded_again(self, held: HeldFile, schema: TableSchema, wanted: Range) -> list[str]:
        """Decode keys and values again, and return how typed columns differ from the result.

        If the table keeps no keys and values, the records that the topic still has are decoded.
        """
        check = self._check_of(schema)
        if held.keeps_raw:
            return check.of_own_rows(self._rows([held], wanted))
        if self._topic is None:
            return []
        kept = self._topic.kept(wanted)
        return check.of_topic(self._topic.rows(kept), self._rows([held], kept))

    def _foreign_problems(self, held: HeldFile) -> Iterator[str]:
        """Check the typed columns of another program's file, using the replaced files' schemas.

        This is done even without the topic, because no load has recorded a digest of the file.
        """
        if held.schema is None:
            return
        file, reached = held.file, held.file.start
        place = f"{file.path}, written by another program"
        for start, end, schema in _by_schema(held):
            if start < reached:
                yield (
                    f"{place}: typed columns of offsets {start} to "
                    f"{reached} are not compared: files of several schemas were replaced there"
                )
            start, reached = max(start, reached), max(end, reached)
            wanted = Range(self._task.topic, file.partition, start, min(end, file.end))
            if wanted.start >= wanted.end:
                continue
            before = self._check_of(schema).compared
            try:
                problems = self._decoded_again(held, schema, wanted)
            except OttlaError as error:
                yield f"{place}: its typed columns are not compared: {error.message}"
                continue
            yield from (f"{place}: {problem}" for problem in problems)
            rows = sum(batch.num_rows for batch in self._rows([held], wanted))
            left = rows - (self._check_of(schema).compared - before)
            if left and not held.keeps_raw:
                yield (
                    f"{place}: timestamps and typed columns of {left} rows of partition "
                    f"{wanted.partition} are not compared: the table keeps no keys and values to "
                    "decode again, and the topic was not read, or has these records no more"
                )

    def _check_of(self, schema: TableSchema) -> TypedCheck:
        words = json.dumps(asdict(schema), sort_keys=True)
        return self._typed.get(words) or self._typed.setdefault(words, TypedCheck(schema))

    def _compare(self, wanted: Range, topic: _TopicRecords) -> None:
        """Compare the range with the topic by hash sums, and row by row if the sums differ."""
        task, found, cluster = self._task, self._found, topic.cluster
        described, has_holes = topic.compared.described, topic.compared.has_holes
        place = f"{wanted.topic}-{wanted.partition}"
        kept = topic.kept(wanted)
        present = [held for held in task.files if exists(task.store, held.file.path)]
        # A new random key, so that rows cannot have been forged to have the same hash.
        key = secrets.token_bytes(ROW_KEY_BYTES) if all(one.keeps_raw for one in present) else None
        account = RangeAccount(kept.partition, kept.start, kept.end, has_holes)
        try:
            topic_sum = sum_of(_read(kept, cluster, account), key)
        except OttlaError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            found.of_topic.append(error.message)
            return
        found.ledgers.append(
            PartitionLedger(kept.partition, 0, 0, control=account.control, aborted=account.aborted)
        )
        spoilt = [one for one in account.skipped if not is_among(one, task.skipped)]
        found.of_topic += spoilt_lines(wanted.topic, spoilt)
        lake_sum = sum_of(self._rows(present, kept), key)
        below = self._rows(present, replace(wanted, end=kept.start))
        found.only_in_lake += sum(batch.num_rows for batch in below)
        by_broker = account_of(cluster, kept) if described.has_ledger else None
        ledger = (
            account.ledger().settled(totals_of(by_broker))
            if by_broker
            else account.ledger_with_gaps()
        )
        (ledger,) = judged([ledger], cluster, kept.topic)
        if not ledger.balances:
            found.of_topic.append(f"{kept} of the topic does not add up: {ledger}")
        if topic_sum == lake_sum:
            found.compared += topic_sum[0]
            return
        differences = self._by_offset(kept, present, topic, key)
        # Rows at offsets that are unreadable now were reported above.
        differences.extra = [o for o in differences.extra if not _covers(account.skipped, o)]
        again = [o for o in differences.missing if _covers(task.skipped, o)]
        if again:
            differences.missing = sorted(set(differences.missing) - set(again))
            found.of_topic.append(
                f"{place}: readable again since they were left out as "
                f"unreadable: {named(again)}; `ottla lake replace` reads them again"
            )
        if may_be_compacted(cluster, described, kept.partition, by_broker, len(differences.extra)):
            found.only_in_lake += len(differences.extra)
            differences.extra.clear()
        found.compared += differences.compared
        found.of_topic += differences.of_records(place)
        why = by_broker and elections_at(by_broker, differences.extra + differences.altered)
        if why:
            found.of_topic.append(f"{place}: of these {why}")

    def _by_offset(
        self, kept: Range, present: Sequence[HeldFile], topic: _TopicRecords, key: bytes | None
    ) -> Differences:
        differences = Differences()
        for start in range(kept.start, kept.end, _WINDOW_OFFSETS):
            window = replace(kept, start=start, end=min(start + _WINDOW_OFFSETS, kept.end))
            in_topic = hashes_of(topic.rows(window), key)
            differences.add(compared(in_topic, hashes_of(self._rows(present, window), key)))
        return differences


def spoilt_lines(topic: str, spoilt: Sequence[Unreadable]) -> list[str]:
    """Return problems of offsets that loads could read, but that are unreadable now."""
    return [
        f"{line}: they could be read when they were loaded, and nothing can be compared there"
        for line in skipped_lines(topic, spoilt)
    ]


def _by_schema(held: HeldFile) -> list[tuple[int, int, TableSchema]]:
    """Return spans of offsets, in order, each with the schema by which its rows were decoded."""
    found: list[tuple[int, int, TableSchema]] = []
    for file, known in sorted(held.replaces, key=lambda one: (one[0].start, one[0].end)):
        # Typed columns are null in rows that were loaded before the table had any.
        schema = known or TableSchema(0, ())
        if file.end <= held.file.start or file.start >= held.file.end:
            continue
        if found and found[-1][2] == schema:
            start, end, _ = found.pop()
            found.append((start, max(end, file.end), schema))
        else:
            found.append((max(file.start, held.file.start), file.end, schema))
    return found


def _covers(skipped: Sequence[Unreadable], offset: int) -> bool:
    return any(one.start <= offset < one.end for one in skipped)
