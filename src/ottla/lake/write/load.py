"""Loads a topic: plan the new ranges, run a task for each, commit files and offsets in one step.

    describe topic → ranges from where the last load ended → tasks → ledger → manifest

A further load loads only new records. If a load is killed, it is either committed as a whole or not
at all. Of two loads at once, one commits and the other raises `CommitConflict`.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Unpack

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.load_task import LoadTask
from ottla.lake.job.options import LoadOptions
from ottla.lake.job.task import LoadResult, TaskResult, load_result
from ottla.lake.model.event_times import (
    ONE_BUCKET,
    TIMESTAMP,
    Buckets,
    EventRule,
    EventSettings,
    EventTimes,
    after_load,
    column_name,
    decided,
    moves,
)
from ottla.lake.model.layout import TypedSchema, layout_of
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.option import filled
from ottla.lake.model.plan import parse_boundary
from ottla.lake.source.cluster import TopicBounds, connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.tables.table import CommitConflict
from ottla.lake.write.load_plan import LoadPlan
from ottla.lake.write.rewrite import needs_widening, widen
from ottla.lake.write.settings import LoadSettings, row_settings_of
from ottla.lake.write.table_schema import LoadTyping, require_readable
from ottla.lake.write.topic_writer import TopicWriter, opened_for
from ottla.ledger.partition import PartitionLedger

__all__ = ["CommitConflict", "LoadResult", "load"]


def load(topic: str, target: str, **options: Unpack[LoadOptions]) -> LoadResult:
    """Load the new records of `topic` into the table in `target`, a folder or a URL.

    `start` applies only to the first load of a partition (see `plan.parse_boundary`). Later loads
    start at the table's positions, where the last load ended. Each load commits a position for
    every partition, even for one without new records. `end` is a boundary too.

    If `master` is `here`, tasks run in this process, without Spark and Java, which suits small
    loads. Otherwise they run on Spark (`spark_session`, the running session, or a new one made by
    `master` and `conf`), unless `runner` is given. If `group` is given, the table's positions are
    committed as the group's offsets after the load. Retention may then wait for the group
    (`ottla.retention.hold.groups`), and the group's lag is the table's.

    A batch that cannot be read fails the load. With `skip_unreadable`, its offsets are counted as
    unreadable instead, and named in the result and the manifest. Offsets that were deleted since
    the last load, or since this load was planned, fail the load too. With `accept_loss`, the
    manifest records their number instead. `on_bad_timestamp` says whether a record whose timestamp
    does not fit into the column fails the load, gets null, or becomes a dead letter.

    `key`, `value` and their options add typed columns; later loads continue with them.
    `partition_by` divides files by event time in units that the first load decides, and `late_rows`
    says how late rows are treated. If the table's manifests contradict each other, the load fails,
    unless `override` gives a reason to build on them. Then the manifest records the problems and
    the reason.

    With `into_existing` the table is a Delta or Iceberg table that another program made. `format`
    is the format of a new table (`parquet`), `store_options` go to the storage's library.
    `LoadOptions` has all options. Raises OttlaError (CommitConflict if another load committed
    meanwhile; then nothing changes).
    """
    given = filled(LoadOptions, options)
    began_s = time.monotonic()
    start, end = parse_boundary(given["start"]), parse_boundary(given["end"])
    settings = row_settings_of(given)
    require_readable(settings.decode, given["format"])
    existing = given["into_existing"]
    with opened_for(
        topic, target, given, settings, rows_written, (start, end), into_existing=existing
    ) as writer:
        with closing(connect(settings.bootstrap)) as cluster:
            base = writer.base(cluster, given["override"])
            plan = writer.plan(cluster, base, start, end)
            plan = replace(plan, high_watermarks=cluster.high_watermarks(topic))
            held = tuple(
                held_back_in(cluster, settings.bootstrap, base.described, plan.limits.ends)
            )
        writer.steps.reached("planned")
        is_new = not plan.is_empty or _is_worth_a_commit(plan, settings.events)
        newest = writer.run_plan(plan) if is_new else plan.before
        removed = writer.follow_up(newest, is_new=is_new)
    return load_result(newest, removed, began_s, is_new=is_new, held_back=held)


def rows_written(writer: TopicWriter, plan: LoadPlan, settings: LoadSettings) -> Manifest:
    """Write the rows of a plan's ranges to files, and commit them. Return the new manifest."""
    plan, build = rows_read(writer, plan, settings)
    return writer.commit(build, plan)


def rows_read(
    writer: TopicWriter, plan: LoadPlan, settings: LoadSettings
) -> tuple[LoadPlan, "partial[Manifest]"]:
    """Write the rows of a plan's ranges to files.

    Returns the plan, whose base has changed if columns were widened, and the builder of a manifest.
    """
    typing = writer.typing(plan, settings, plan.ranges)
    events = _events_for(settings.events, plan.before, typing, reads=bool(plan.ranges))
    # The commit checks this too, but by then the files are written.
    layout = layout_of(typing.table_schema() if typing else None)
    buckets = Buckets(events.column, events.by) if events else ONE_BUCKET
    writer.table.require_fitting(layout.schema, buckets)
    results: list[TaskResult] = []
    if plan.ranges:
        rule = _rule_of(events, plan.described)
        if rule is not None and plan.kind == "replacement":
            # Rows that are read again are never late.
            rule = replace(rule, watermark_ms=None)
        results, typing = writer.read(partial(_tasks, writer, plan, settings, rule), typing)
    writer.steps.reached("files written")
    ledgers, build = writer.outcome(plan, results, settings, typing)
    if plan.before is not None and typing is not None and needs_widening(writer.table, typing):
        plan = _widened(writer, plan, plan.before, typing)
        # The commit that widened the columns has recorded the schema changes.
        build = partial(build, schema_changes=())
    files = [file for result in results for file in result.files]
    files.sort(key=lambda file: (file.partition, file.start, file.event))
    if events is not None:
        events = _events_after(events, results, plan, ledgers)
    return plan, partial(build, files=files, events=events)


def _tasks(
    writer: TopicWriter,
    plan: LoadPlan,
    settings: LoadSettings,
    rule: EventRule | None,
    typing: LoadTyping | None,
) -> list[LoadTask]:
    return [
        LoadTask(
            wanted=sized.wanted,
            bootstrap=settings.bootstrap,
            compacted=plan.described.compacted or plan.described.has_ledger,
            store=writer.table.store,
            path=writer.table.file_stem(
                plan.version, plan.load_id, sized.wanted.partition, sized.wanted.start
            ),
            skip_unreadable=settings.skip_unreadable,
            null_bad_timestamps=settings.null_bad_timestamps or settings.dead_timestamps,
            size_bytes=sized.size_bytes,
            sorting=typing.sorting if typing else None,
            events=rule,
            row_group_rows=settings.sizes.row_group_rows,
            row_group_bytes=settings.sizes.row_group_bytes,
        )
        for sized in plan.ranges
    ]


def _widened(writer: TopicWriter, plan: LoadPlan, before: Manifest, typing: LoadTyping) -> LoadPlan:
    """Commit the wider columns first, and return the plan on top of that commit."""
    if plan.kind == "replacement":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a column gets a wider type than the table in {writer.table.store.url} has, for which "
            "all of its files are written anew; nothing was replaced: `ottla lake load` with the "
            "same declaration does that, run it first",
        )
    newest, digest = widen(writer, before, typing)
    return replace(plan, before=newest, digest=digest)


def _events_for(
    asked: EventSettings, before: Manifest | None, typing: LoadTyping | None, *, reads: bool
) -> EventTimes | None:
    """Return the event-time settings of a load; None if the table is not divided by event time.

    If the load reads rows (`reads`), the event-time column is checked against `typing`. Raises
    OttlaError if the settings do not fit the table.
    """
    events = decided(asked, before.events if before else None, is_new=before is None)
    if events is None or not reads:
        return events
    schema = typing.sorting.schema if typing else TypedSchema()
    kinds = {one.name: one.type for one in (*schema.key, *schema.value)}
    if events.column != TIMESTAMP:
        kind = kinds.get(events.column)
        if kind is None or not pa.types.is_timestamp(kind.arrow):
            what = f"is {kind}" if kind else "is no column of this load"
            known = ", ".join(n for n, k in kinds.items() if pa.types.is_timestamp(k.arrow))
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"the event time {events.column} {what}; it is {TIMESTAMP} (the record's), or a "
                f"decoded column of type timestamp ({known or 'there is none'})",
            )
    if column_name(events.by) in kinds:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a decoded column has the name {column_name(events.by)}, which is that of the "
            "partitions: rename it (rules.rename), or partition by another unit",
        )
    return events


def _rule_of(events: EventTimes | None, described: TopicBounds) -> EventRule | None:
    """Return the rule by which tasks treat event times; `events` is the state before the load."""
    if events is None:
        return None
    clock_ms = described.at_ms or time.time_ns() // 1_000_000
    return EventRule(events.column, events.by, events.watermark_ms, events.late_rows, clock_ms)


def _empty_at(plan: LoadPlan) -> dict[int, int]:
    """Return the time, in ms, at which each fully read partition was described.

    A partition with records after the load's end is left out, even if these records belong to an
    open transaction and cannot be read yet.
    """
    described, ends, marks = plan.described, plan.limits.ends, plan.high_watermarks
    return {
        partition: described.at_ms
        for partition, bound in described.bounds.items()
        if described.at_ms and ends.get(partition) == bound.end == marks.get(partition)
    }


def _events_after(
    events: EventTimes,
    results: Sequence[TaskResult],
    plan: LoadPlan,
    ledgers: Sequence[PartitionLedger],
) -> EventTimes:
    """Return the event-time state for the load's manifest, after `ledgers` moved the positions."""
    seen: dict[int, int] = {}
    late: dict[int, int] = {}
    for result in results:
        partition = result.ledger.partition
        if result.highest_ms is not None:
            seen[partition] = max(result.highest_ms, seen.get(partition, result.highest_ms))
        if result.late:
            late[partition] = late.get(partition, 0) + result.late
    partitions = {**(plan.positions or {}), **{one.partition: one.end for one in ledgers}}
    return after_load(events, seen=seen, empty_at=_empty_at(plan), late=late, partitions=partitions)


def _is_worth_a_commit(plan: LoadPlan, asked: EventSettings) -> bool:
    """Return whether a load without rows moves the table's watermark into another bucket."""
    events = _events_for(asked, plan.before, None, reads=False)
    if events is None or events.idle_ms is None:
        return False
    after = _events_after(events, (), plan, ())
    return moves(events.watermark_ms, after.watermark_ms, events.by)
