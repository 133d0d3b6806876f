"""Loads a topic: plan the new ranges, run a task for each, commit files and offsets in one step.

    describe topic → ranges from where the last load ended → tasks → ledger → manifest

A further load loads only new records. If a load is killed, it is either committed as a whole or not
at all. Of two loads at once, one commits and the other raises `LoadLost`.
"""

import time
from contextlib import closing
from dataclasses import replace
from typing import Unpack

from ottla.lake.job.options import LoadOptions
from ottla.lake.job.result import LoadResult
from ottla.lake.job.runner import workers_of
from ottla.lake.model.option import filled
from ottla.lake.model.plan import parse_boundary
from ottla.lake.source.boundaries import limits_of_load, require_boundaries
from ottla.lake.source.cluster import connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.source.ledgers import commit_positions
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.commit import Steps
from ottla.lake.tables.opening import open_table, place_of
from ottla.lake.tables.table import LoadLost, committed_before, foundation, on_record
from ottla.lake.write.commit import (
    built_on,
    commit_plan,
    plan_load,
    require_no_planned_loss,
)
from ottla.lake.write.dead_letters import send_letters
from ottla.lake.write.settings import row_settings_of
from ottla.lake.write.table_schema import require_readable

__all__ = ["LoadLost", "LoadResult", "load"]


def load(topic: str, target: str, **options: Unpack[LoadOptions]) -> LoadResult:
    """Load the new records of `topic` into the table in `target`, a folder or a URL.

    `start` applies only to the first load of a partition (see `plan.parse_boundary`). Later loads
    start where the last one ended; each load commits that position for every partition, even if it
    loads nothing from it. `end` is a boundary too.

    With the `master` `here` tasks run in this process, without Spark and Java: for small loads.
    Otherwise they run on Spark, on `spark_session`, the running session or a new one by `master`
    and `conf`, unless `runner` runs them. If `group` is given, the table's positions are committed
    for it after the load: retention may wait for the group (`ottla.retention.hold.groups`), and its
    lag is the table's.

    A batch that cannot be read fails the load, unless `skip_unreadable` is set: then its offsets
    are counted as unreadable, and named in the result and the manifest. Offsets that were deleted
    since the last load, or since this one was planned, fail the load too, unless `accept_loss` is
    set: then the manifest records their number. A record whose timestamp does not fit into the
    column fails the load, gets null, or is a dead letter; `dead_letter_topic` gets a copy of each
    dead letter.

    `key`, `value` and their options add typed columns; later loads continue with them.
    `partition_by` divides files by event time, and `late_rows` says how late rows are treated; the
    first load decides the unit. A table whose manifests contradict each other fails the load,
    unless `override` gives a reason to build on it: then the manifest records the problems and the
    reason.

    With `into_existing` the table is a Delta or Iceberg table that another program made. `format`
    is the format of a new table (`parquet`), `store_options` go to the storage's library.
    `LoadOptions` has all options. Raises OttlaError (LoadLost if another load committed meanwhile;
    then nothing changes).
    """
    given = filled(LoadOptions, options)
    began = time.monotonic()
    group, override = given["group"], given["override"]
    watch, store_options = given["watch"], given["store_options"]
    dead_letter_topic = given["dead_letter_topic"]
    place = place_of(target, store_options)
    start_at, end_at = parse_boundary(given["start"]), parse_boundary(given["end"])
    settings = row_settings_of(given)
    bootstrap = settings.bootstrap
    require_readable(settings.decode, given["format"])
    run = workers_of(given, watch)
    steps = Steps(watch.on_step)

    with as_storage_error(place):
        with closing(connect(bootstrap)) as cluster:
            # Check these first, so that invalid options or a mistyped topic create no empty table.
            asked = cluster.describe(topic)
            require_boundaries(cluster, asked, start_at, end_at)
            if dead_letter_topic is not None:
                cluster.topic_id(dead_letter_topic)
            table = open_table(
                target,
                given["format"],
                store_options,
                steps.reached,
                into_existing=given["into_existing"],
            )
            base = foundation(table) if override else None
            overridden = on_record(base.problems, override) if base and override else ()
            described, before, before_digest = built_on(table, cluster, topic, base)
            positions = before.positions if before else None
            limits = limits_of_load(cluster, described, start_at, end_at, positions)
            plan = plan_load(
                bootstrap,
                described,
                before,
                before_digest,
                limits,
                overridden,
                sizes=settings.sizes,
            )
            plan = replace(plan, high_watermarks=cluster.high_watermarks(topic))
            held = tuple(held_back_in(cluster, bootstrap, described, limits.ends))
        require_no_planned_loss(plan, settings)
        watch.on_step("planned")
        if plan.is_empty and not plan.moves_watermark(settings):
            removed = table.remove_orphans()
            if group is not None and before is not None:
                commit_positions(group, before, bootstrap)
            if dead_letter_topic is not None and before is not None:
                # Dead letters of a load that was killed before it had sent them.
                send_letters(target, dead_letter_topic, bootstrap, store_options)
            seconds = time.monotonic() - began
            return LoadResult(before, 0, 0, seconds, (), tuple(removed), held_back=held)
        manifest = commit_plan(table, plan, settings, run, steps, watch.on_step)
        with committed_before(place, manifest.version):
            if group is not None:
                commit_positions(group, manifest, bootstrap)
            removed = table.remove_orphans()
            if dead_letter_topic is not None:
                send_letters(target, dead_letter_topic, bootstrap, store_options)
    return LoadResult(
        manifest,
        manifest.rows,
        len(manifest.files),
        time.monotonic() - began,
        manifest.ledgers,
        tuple(removed),
        manifest.skipped,
        held,
    )
