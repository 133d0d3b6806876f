"""A load: plan what is new, run a task for each range on Spark, commit files and offsets at once.

    describe topic → ranges from where the last load ended → tasks → ledger → manifest

Running it again loads only what is new. Killed at any step it leaves either nothing that counts
or the whole load. Of two at once, one commits and the other raises `LoadLost`.
"""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import spark
from ottla.lake.cluster import connect
from ottla.lake.evidence import judged
from ottla.lake.folder.files_written import require_files
from ottla.lake.folder.leftovers import Steps, removed_on_failure
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.folder.targets import folder_of
from ottla.lake.loss import deleted_at, gone_before, losses, require_no_loss
from ottla.lake.manifest import Manifest, next_manifest
from ottla.lake.plan import (
    Boundary,
    parse_boundary,
    ranges,
    require_past,
    require_same_id,
    require_same_topic,
    resolve,
)
from ottla.lake.session import SparkSettings, session
from ottla.lake.sizes import partition_bytes
from ottla.lake.source import Cluster, TopicDescription
from ottla.lake.splitting import SizedRange, split
from ottla.lake.table import LoadLost, Table
from ottla.lake.task import Task, TaskResult, run
from ottla.lake.telling import commit_positions, settled, told_of_loss
from ottla.ledger.partition import PartitionLedger, Told, Unreadable

__all__ = ["LoadLost", "LoadResult", "load", "run_here"]

# Offsets of one task at most; it is split further by its bytes.
_OFFSETS_PER_TASK = 2_000_000
_LOSS = (
    "Nothing was committed. Go on without them: `ottla lake load --accept-loss` (load(…, "
    "accept_loss=True)) puts their number on record. Retention waits for loads that commit to a "
    "group (--group), where the topic's ottla.retention.hold.groups names it"
)


Runner = Callable[[Sequence[Task]], list[TaskResult]]


def run_here(planned: Sequence[Task]) -> list[TaskResult]:
    """Run tasks in this process, one after another, without Spark."""
    return [run(task, uuid.uuid4().hex[:12]) for task in planned]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `manifest` is the newest: where nothing was new, an earlier load's."""

    manifest: Manifest | None
    rows: int
    files: int
    seconds: float
    ledgers: tuple[PartitionLedger, ...]
    removed: tuple[str, ...]  # Orphans of loads that never counted.
    skipped: tuple[Unreadable, ...] = ()  # What could not be read, with `skip_unreadable`.


@dataclass(frozen=True, slots=True)
class _Plan:
    version: int
    load_id: str
    starts: dict[int, int]
    ends: dict[int, int]
    ranges: Sequence[SizedRange]
    idle: Sequence[int]  # Partitions that have no position yet, and nothing to load.
    gone_below: Mapping[int, int]  # Below it a deletion is no loss.
    lost: Mapping[PartitionLedger, int]  # What is lost already.


def load(
    topic: str,
    target: str,
    *,
    bootstrap: str = "localhost:9092",
    start: str = "last-load",
    end: str = "latest",
    group: str | None = None,
    skip_unreadable: bool = False,
    accept_loss: bool = False,
    on_bad_timestamp: Literal["fail", "null"] = "fail",
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    runner: Runner | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> LoadResult:
    """Load what is new in `topic` into the table in folder `target`.

    `start` matters to the first load of a partition only (see `plan.parse_boundary`); later ones
    start where the last one ended, which each load commits for every partition, also where it
    loads nothing of it. `end` is a boundary too. Tasks run on Spark, on `spark_session`, the
    running session or a new one by `spark_settings`, unless `runner` runs them (`run_here`: in
    this process, for small loads). `group`, where given, is committed to where the table stands
    then: retention may wait for it (`ottla.retention.hold.groups`), and its lag is the table's. A
    batch that cannot be read fails the load, unless `skip_unreadable`: then its offsets are
    counted as unreadable and named in the result and the manifest. So do offsets that were deleted
    since the last load, or since this one was planned, unless `accept_loss`: then the manifest
    says how many. A record whose timestamp does not fit into the column fails the load, or gets
    null. `on_step` is called with the name of each step once it is done. Raises OttlaError
    (LoadLost, where another load committed meanwhile; nothing is changed).
    """
    began = time.monotonic()
    folder = folder_of(target)
    start_at, end_at = parse_boundary(start), parse_boundary(end)
    steps = Steps()

    def on_each_step(step: str) -> None:
        steps.done.add(step)
        on_step(step)

    with as_storage_error(folder):
        with closing(connect(bootstrap)) as cluster:
            # Wrong words, a mistyped topic among them, leave no empty table behind.
            cluster.describe(topic)
            table = Table.create_or_open(target, on_each_step)
            before, before_digest = table.latest()
            # After the manifest was read: another load may have moved its positions meanwhile.
            described = cluster.describe(topic)
            with told_of_loss(cluster, described, before):
                _require_table_of(topic, before, described)
            plan = _plan(bootstrap, cluster, described, before, start_at, end_at)
        if not accept_loss:
            require_no_loss(topic, plan.lost, _LOSS)
        on_step("planned")
        if not plan.ranges and not plan.idle:
            removed = table.remove_orphans()
            if group is not None and before is not None:
                commit_positions(group, before, bootstrap)
            return LoadResult(before, 0, 0, time.monotonic() - began, (), tuple(removed))
        with (
            table.running.mark(plan.load_id),
            removed_on_failure(table, plan.version, plan.load_id, steps),
        ):
            if plan.ranges and runner is None:
                runner = partial(spark.run_tasks, spark_session or session(spark_settings))
                on_step("spark started")
            tasks = _tasks(
                table,
                plan,
                bootstrap,
                described,
                skip_unreadable=skip_unreadable,
                null_bad_timestamps=on_bad_timestamp == "null",
            )
            results = runner(tasks) if runner is not None and tasks else []
            on_step("files written")
            ledgers = _settled_ledgers(results, described, bootstrap)
            ledgers += _idle_ledgers(plan, described)
            ledgers.sort(key=lambda one: one.partition)
            found = losses(ledgers, plan.gone_below)
            if not accept_loss:
                require_no_loss(topic, found, _LOSS)
            manifest = _manifest(before, before_digest, plan, described, results, ledgers, found)
            _require_balance(manifest)
            require_files(table.folder, manifest.files)
            # Last of all: an id never comes back, so that all that was read was this topic's.
            with closing(connect(bootstrap)) as cluster:
                require_same_id(topic, described.topic_id, cluster.topic_id(topic))
            table.commit(manifest)
        if group is not None:
            commit_positions(group, manifest, bootstrap)
        removed = table.remove_orphans()
    return LoadResult(
        manifest,
        manifest.rows,
        len(manifest.files),
        time.monotonic() - began,
        manifest.ledgers,
        tuple(removed),
        manifest.skipped,
    )


def _manifest(
    before: Manifest | None,
    before_digest: str | None,
    plan: _Plan,
    described: TopicDescription,
    results: Sequence[TaskResult],
    ledgers: Sequence[PartitionLedger],
    found: Mapping[PartitionLedger, int],
) -> Manifest:
    """What the table will hold once this load counts: all files of its tasks, in order."""
    files = [result.file for result in results if result.file]
    return next_manifest(
        before,
        before_digest,
        load_id=plan.load_id,
        topic=described.topic,
        topic_id=described.topic_id,
        cluster_id=described.cluster_id,
        created_ms=time.time_ns() // 1_000_000,
        files=sorted(files, key=lambda file: (file.partition, file.start)),
        ledgers=ledgers,
        skipped=sorted(
            (one for result in results for one in result.skipped),
            key=lambda one: (one.partition, one.start),
        ),
        accepted_loss={ledger.partition: count for ledger, count in found.items()},
    )


def _require_table_of(topic: str, before: Manifest | None, described: TopicDescription) -> None:
    if before is None:
        return
    if before.topic != topic:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"this table holds topic {before.topic}; load {topic} into a folder of its own",
        )
    require_same_topic(
        topic, before.topic_id, described.topic_id, before.positions, described.bounds
    )


def _plan(
    bootstrap: str,
    cluster: Cluster,
    described: TopicDescription,
    before: Manifest | None,
    start: Boundary,
    end: Boundary,
) -> _Plan:
    positions = dict(before.positions) if before else {}
    require_past(start, time.time_ns() // 1_000_000)
    if before is not None and start.kind == "latest":
        # The first load wrote the position of each partition: others were added since then.
        start = Boundary("earliest")
    starts = resolve(
        start, described.bounds, by_time=_by_time(cluster, described, start), last_load=positions
    )
    # Whatever the words for the start: no offset is loaded twice, and none is skipped.
    starts.update(positions)
    ends = resolve(
        end,
        described.bounds,
        by_time=_by_time(cluster, described, end),
        last_load=positions,
        unnamed="latest",
    )
    gone_below = gone_before(described.bounds, positions)
    for partition in starts:
        ends[partition] = max(ends[partition], starts[partition])
    planned = ranges(
        described.topic,
        starts,
        ends,
        offsets_max=_OFFSETS_PER_TASK,
        tasks_min=1,
        topic_id=described.topic_id,
    )
    sizes = partition_bytes(bootstrap, described.topic) if planned else {}
    return _Plan(
        version=before.version + 1 if before else 1,
        load_id=uuid.uuid4().hex,
        starts=starts,
        ends=ends,
        ranges=split(planned, described.bounds, sizes),
        idle=[p for p in sorted(starts) if p not in positions and starts[p] == ends[p]],
        gone_below=gone_below,
        lost=losses(
            [deleted_at(starts[p], ends[p], p, bound) for p, bound in described.bounds.items()],
            gone_below,
        ),
    )


def _by_time(cluster: Cluster, described: TopicDescription, boundary: Boundary) -> dict[int, int]:
    if boundary.timestamp_ms is None:
        return {}
    return cluster.offsets_at(described.topic, boundary.timestamp_ms)


def _tasks(
    table: Table,
    plan: _Plan,
    bootstrap: str,
    described: TopicDescription,
    *,
    skip_unreadable: bool,
    null_bad_timestamps: bool,
) -> list[Task]:
    return [
        Task(
            wanted=sized.wanted,
            bootstrap=bootstrap,
            compacted=described.compacted or described.has_ledger,
            folder=str(table.folder),
            path=table.file_stem(
                plan.version, plan.load_id, sized.wanted.partition, sized.wanted.start
            ),
            skip_unreadable=skip_unreadable,
            null_bad_timestamps=null_bad_timestamps,
            log_bytes=sized.size_bytes,
        )
        for sized in plan.ranges
    ]


def _partition_ledgers(results: Sequence[TaskResult]) -> list[PartitionLedger]:
    """One account for each partition, from those of its ranges."""
    by_partition: dict[int, list[PartitionLedger]] = {}
    for result in sorted(results, key=lambda r: (r.ledger.partition, r.ledger.start)):
        by_partition.setdefault(result.ledger.partition, []).append(result.ledger)
    return [reduce(PartitionLedger.followed_by, parts) for _, parts in sorted(by_partition.items())]


def _settled_ledgers(
    results: Sequence[TaskResult], described: TopicDescription, bootstrap: str
) -> list[PartitionLedger]:
    """A ledger for each partition that was read, with every gap explained where that can be."""
    ledgers = _partition_ledgers(results)
    if described.has_ledger:
        return list(settled(ledgers, described, bootstrap))
    with closing(connect(bootstrap)) as cluster:
        return list(judged(ledgers, cluster, described.topic))


def _idle_ledgers(plan: _Plan, described: TopicDescription) -> list[PartitionLedger]:
    """Accounts of no offsets, for the positions that they write."""
    told = Told(0, 0, 0, 0, 0, 0, 0) if described.has_ledger else None
    return [PartitionLedger(p, plan.starts[p], plan.starts[p], told=told) for p in plan.idle]


def _require_balance(manifest: Manifest) -> None:
    for ledger in manifest.ledgers:
        if not ledger.balances:
            raise OttlaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{ledger.unexplained} of the offsets {ledger.start} to {ledger.end} of "
                f"{manifest.topic}-{ledger.partition} are unexplained: {ledger}. Nothing was "
                "committed. Load again, where the leader has changed meanwhile; else look at the "
                "log with `ottla log ledger` and `ottla log dump`",
            )
