"""One job of a verification: compares a range's files with their manifests and the topic.

Runs in the driver's process or in a task of Spark, with the same findings.
"""

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.differences import Differences, compared, hashes_of, named, sum_of
from ottla.lake.check.file_findings import check_file
from ottla.lake.check.findings import CheckFindings, is_among
from ottla.lake.check.held import HeldFile, exists, rows_of
from ottla.lake.check.jobs import RangeJob
from ottla.lake.model.manifest import TableSchema
from ottla.lake.model.plan import Range
from ottla.lake.model.row_hash import ROW_KEY_BYTES
from ottla.lake.rows.proof_rows import TypedCheck
from ottla.lake.source.cluster import Cluster, TopicDescription, connect
from ottla.lake.source.ledgers import (
    account_of,
    elections_at,
    judged,
    may_be_compacted,
    skipped_lines,
    totals_of,
)
from ottla.lake.source.reader import read_range
from ottla.ledger.partition import RangeAccount, Unreadable

# How many offsets are compared row by row at a time; this bounds the memory.
_WINDOW_OFFSETS = 500_000
_read = partial(
    # Read leniently: by their options, loads may have skipped unreadable batches or nulled times.
    read_range,
    skip_unreadable=True,
    null_bad_timestamps=True,
)


@dataclass(frozen=True, slots=True)
class CheckTask:
    """A job of a verification, with its own connection."""

    job: RangeJob

    @property
    def size_bytes(self) -> int:
        return self.job.size_bytes

    @property
    def offsets(self) -> int:
        return 0

    def run(self) -> CheckFindings:
        """Check the job's files, and compare its range with the topic. Raises OttlaError."""
        job = self.job
        with closing(connect(job.bootstrap)) if job.bootstrap else nullcontext() as cluster:
            return RangeChecker(cluster).check(job)


class RangeChecker:
    """Runs jobs, one after another, over one connection. Without one it checks files only."""

    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._typed: dict[str, TypedCheck] = {}

    def check(self, job: RangeJob) -> CheckFindings:
        """Check each file of the job, and compare the range with the topic. Raises OttlaError."""
        found = CheckFindings()
        with DamagedFiles(job.store) as damaged:
            for held in job.files:
                if not held.is_foreign:
                    _check_file(job, held, found, damaged)
            if self._cluster is not None and job.described is not None:
                if job.wanted is not None:
                    _compare(job, job.wanted, self._cluster, job.described, found, damaged)
                found.of_typed += self._typed_problems(job, self._cluster, job.described, damaged)
            for held in job.files:
                found.of_typed += self._foreign_problems(job, held, damaged)
        return found

    def _typed_problems(
        self,
        job: RangeJob,
        cluster: Cluster,
        described: TopicDescription,
        damaged: DamagedFiles,
    ) -> Iterator[str]:
        """Decode the sources of typed columns again, and yield where they differ."""
        for held in job.files:
            if held.schema is None or held.is_foreign:
                continue
            check, file = self._check_of(held.schema), held.file
            log_start = described.bounds[file.partition].log_start
            start = min(file.end, max(file.start, log_start))
            wanted = Range(described.topic, file.partition, start, file.end)
            everything = Range(described.topic, file.partition, file.start, file.end)
            if check.keeps_raw:
                problems = check.of_own_rows(rows_of(job.store, [held], everything, damaged))
            else:
                account = RangeAccount(file.partition, start, file.end, True)
                rows = _read(wanted, cluster, account)
                in_lake = rows_of(job.store, [held], wanted, damaged)
                problems = check.of_topic(rows, in_lake)
            yield from (f"{file.path}: {problem}" for problem in problems)

    def _foreign_problems(
        self, job: RangeJob, held: HeldFile, damaged: DamagedFiles
    ) -> Iterator[str]:
        """Decode another program's rows again, by the schemas of the files that it replaces.

        Done even without the topic, because no load has the digest of this file's bytes.
        """
        if not held.is_foreign or held.schema is None:
            return
        file, reached = held.file, held.file.start
        for start, end, schema in _by_schema(held):
            if start < reached:
                yield (
                    f"{file.path}, written by another program: typed columns of offsets {start} to "
                    f"{reached} are not compared: files of several schemas were replaced there"
                )
            start, reached = max(start, reached), max(end, reached)
            wanted = Range(job.topic, file.partition, start, min(end, file.end))
            try:
                problems = self._decoded_again(job, held, schema, wanted, damaged)
            except OttlaError as error:
                problems = [f"its typed columns are not compared: {error.message}"]
            yield from (
                f"{file.path}, written by another program: {problem}" for problem in problems
            )

    def _decoded_again(
        self,
        job: RangeJob,
        held: HeldFile,
        schema: TableSchema,
        wanted: Range,
        damaged: DamagedFiles,
    ) -> list[str]:
        if wanted.start >= wanted.end:
            return []
        check = self._check_of(schema)
        if held.keeps_raw:
            return check.of_own_rows(rows_of(job.store, [held], wanted, damaged))
        before, problems = check.compared, []
        if self._cluster is not None and job.described is not None:
            floor = max(wanted.start, job.described.bounds[wanted.partition].log_start)
            if floor < wanted.end:
                kept = Range(wanted.topic, wanted.partition, floor, wanted.end)
                account = RangeAccount(kept.partition, kept.start, kept.end, True)
                in_lake = rows_of(job.store, [held], kept, damaged)
                problems = check.of_topic(_read(kept, self._cluster, account), in_lake)
        rows = sum(batch.num_rows for batch in rows_of(job.store, [held], wanted, damaged))
        left = rows - (check.compared - before)
        if left:
            problems.append(
                f"timestamps and typed columns of {left} rows of partition {wanted.partition} are "
                "not compared: the table keeps no keys and values to decode again, and the topic "
                "was not read, or has these records no more"
            )
        return problems

    def _check_of(self, schema: TableSchema) -> TypedCheck:
        words = json.dumps(asdict(schema), sort_keys=True)
        return self._typed.get(words) or self._typed.setdefault(words, TypedCheck(schema))


def _by_schema(held: HeldFile) -> list[tuple[int, int, TableSchema]]:
    """Return the spans of offsets, in order, whose rows were decoded by one schema."""
    found: list[tuple[int, int, TableSchema]] = []
    for file, known in sorted(held.replaces, key=lambda one: (one[0].start, one[0].end)):
        # Rows from before the table had typed columns are null there.
        schema = known or TableSchema(0, ())
        if file.end <= held.file.start or file.start >= held.file.end:
            continue
        if found and found[-1][2] == schema:
            start, end, _ = found.pop()
            found.append((start, max(end, file.end), schema))
        else:
            found.append((max(file.start, held.file.start), file.end, schema))
    return found


def _check_file(job: RangeJob, held: HeldFile, found: CheckFindings, damaged: DamagedFiles) -> None:
    in_file = check_file(job.store, held.file, job.topic, held.layout, damaged, held.buckets)
    if held.is_dead:
        found.dead_letters += in_file.rows
        found.of_dead_letters += in_file.problems
    else:
        found.rows += in_file.rows
        found.hash += in_file.hash
        found.of_files += in_file.problems
        if not in_file.problems:
            found.of_files += held.bounds.problems(job.store, held.file)


def _compare(
    job: RangeJob,
    wanted: Range,
    cluster: Cluster,
    described: TopicDescription,
    found: CheckFindings,
    damaged: DamagedFiles,
) -> None:
    """Compare the range with the topic: by sums, and row by row if those differ."""
    floor = min(wanted.end, max(wanted.start, described.bounds[wanted.partition].log_start))
    kept = Range(wanted.topic, wanted.partition, floor, wanted.end)
    present = [held for held in job.files if exists(job.store, held)]
    has_holes = described.compacted or described.has_ledger
    # Drawn now, so that no rows of the table can have been made to fit it.
    key = secrets.token_bytes(ROW_KEY_BYTES) if all(one.keeps_raw for one in present) else None
    account = RangeAccount(kept.partition, kept.start, kept.end, has_holes)
    try:
        topic_sum = sum_of(_read(kept, cluster, account), key)
    except OttlaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        found.of_topic.append(error.message)
        return
    found.partition = kept.partition
    found.control, found.aborted = account.control, account.aborted
    spoilt = [one for one in account.skipped if not is_among(one, job.skipped)]
    found.of_topic += [
        f"{line}: they could be read when they were loaded, and nothing can be compared there"
        for line in skipped_lines(wanted.topic, spoilt)
    ]
    lake_sum = sum_of(rows_of(job.store, present, kept, damaged), key)
    if floor > wanted.start:
        gone = Range(wanted.topic, wanted.partition, wanted.start, floor)
        below = rows_of(job.store, present, gone, damaged)
        found.only_in_lake += sum(batch.num_rows for batch in below)
    by_broker = account_of(cluster, kept) if described.has_ledger else None
    ledger = (
        account.ledger().settled(totals_of(by_broker)) if by_broker else account.ledger_with_gaps()
    )
    (ledger,) = judged([ledger], cluster, kept.topic)
    if not ledger.balances:
        found.of_topic.append(f"{kept} of the topic does not add up: {ledger}")
    if topic_sum == lake_sum:
        found.compared += topic_sum[0]
        return
    differences = _by_offset(job, kept, present, cluster, has_holes, damaged, key)
    # The topic no longer holds these rows of the lake; that is reported above.
    differences.extra = [o for o in differences.extra if not _covers(account.skipped, o)]
    again = [o for o in differences.missing if _covers(job.skipped, o)]
    if again:
        differences.missing = sorted(set(differences.missing) - set(again))
        found.of_topic.append(
            f"{wanted.topic}-{wanted.partition}: readable again since they were left out as "
            f"unreadable: {named(again)}; `ottla lake replace` reads them again"
        )
    if may_be_compacted(cluster, described, kept.partition, by_broker, len(differences.extra)):
        found.only_in_lake += len(differences.extra)
        differences.extra.clear()
    found.compared += differences.compared
    found.of_topic += differences.of_records(f"{wanted.topic}-{wanted.partition}")
    why = by_broker and elections_at(by_broker, differences.extra + differences.altered)
    if why:
        found.of_topic.append(f"{wanted.topic}-{wanted.partition}: of these {why}")


def _by_offset(
    job: RangeJob,
    kept: Range,
    present: Sequence[HeldFile],
    cluster: Cluster,
    has_holes: bool,
    damaged: DamagedFiles,
    key: bytes | None,
) -> Differences:
    differences = Differences()
    for start in range(kept.start, kept.end, _WINDOW_OFFSETS):
        window = Range(kept.topic, kept.partition, start, min(start + _WINDOW_OFFSETS, kept.end))
        account = RangeAccount(window.partition, window.start, window.end, has_holes)
        topic = hashes_of(_read(window, cluster, account), key)
        lake = hashes_of(rows_of(job.store, present, window, damaged), key)
        differences.add(compared(topic, lake))
    return differences


def _covers(skipped: Sequence[Unreadable], offset: int) -> bool:
    return any(one.start <= offset < one.end for one in skipped)
