"""A load: plan what is new, run a task for each range on Spark, commit files and offsets at once.

    describe topic → ranges from where the last load ended → tasks → ledger → manifest

Running it again loads only what is new. Killed at any step it leaves either nothing that counts
or the whole load. Of two at once, one commits and the other raises `LoadLost`.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from ottla.lake.cluster import connect
from ottla.lake.decode.dead_letters import send_letters
from ottla.lake.decode.spec import Decode
from ottla.lake.events.times import EventSettings
from ottla.lake.folder.after_commit import committed_before
from ottla.lake.folder.leftovers import Steps
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.job.progress import OnProgress
from ottla.lake.job.task import Runner
from ottla.lake.job.workers import Workers
from ottla.lake.loads.boundaries import limits_of_load, require_boundaries
from ottla.lake.loads.committing import (
    LoadSettings,
    built_on,
    commit_plan,
    plan_load,
    require_no_planned_loss,
)
from ottla.lake.loads.file_sizes import FileSizes
from ottla.lake.loads.typing import require_readable
from ottla.lake.manifest import Manifest
from ottla.lake.plan import parse_boundary
from ottla.lake.session import SparkSettings
from ottla.lake.stream.held_back import held_back_in
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table, place_of
from ottla.lake.tables.overriding import foundation, on_record
from ottla.lake.tables.table import LoadLost
from ottla.lake.telling import commit_positions
from ottla.ledger.partition import PartitionLedger, Unreadable

__all__ = ["LoadLost", "LoadResult", "load"]


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
    # A line for each partition whose end an open transaction holds back: what is behind waits.
    held_back: tuple[str, ...] = ()


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
    on_bad_timestamp: Literal["fail", "null", "dead-letter"] = "fail",
    decode: Decode | None = None,
    dead_letter_topic: str | None = None,
    events: EventSettings | None = None,
    sizes: FileSizes | None = None,
    override: str | None = None,
    into_existing: bool = False,
    format: Format | None = None,  # noqa: A002  # The word that Spark's writers have for it.
    store_options: Mapping[str, str] | None = None,
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    master: str | None = None,
    runner: Runner | None = None,
    on_progress: OnProgress | None = None,
    lag_s: float | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> LoadResult:
    """Load what is new in `topic` into the table in `target`, a folder or a URL.

    `start` matters to the first load of a partition only (see `plan.parse_boundary`); later ones
    start where the last one ended, which each load commits for every partition, also where it loads
    nothing of it. `end` is a boundary too. With the `master` `here` tasks run in this process,
    without Spark and Java: for small loads. Otherwise they run on Spark, on `spark_session`, the
    running session or a new one by `master` and `spark_settings`, unless `runner` runs them.
    `group`, where given, is committed to where the table stands then: retention may wait for it
    (`ottla.retention.hold.groups`), and its lag is the table's. A batch that cannot be read fails
    the load, unless `skip_unreadable`: then its offsets are counted as unreadable and named in the
    result and the manifest. So do offsets that were deleted since the last load, or since this one
    was planned, unless `accept_loss`: then the manifest says how many. A record whose timestamp
    does not fit into the column fails the load, gets null, or is a dead letter; `dead_letter_topic`
    gets a copy of each. `decode` adds typed columns; later loads go on with them. `events` keeps
    rows apart by event time and says what becomes of late ones; the first load decides by what.
    `sizes` are those of files and row groups. A table whose manifests contradict each other fails
    the load, unless `override` gives a reason to build on it: then the manifest has problems and
    reason on record. With `into_existing` the table is one of Delta or Iceberg that others made.
    `format` is that of a new table (`parquet`), `store_options` go to the
    storage's library. `on_progress` is called with the tasks, `on_step` with the name of each step
    once it is done. Raises OttlaError (LoadLost, where another load committed meanwhile; nothing is
    changed).
    """
    began = time.monotonic()
    place = place_of(target, store_options)
    start_at, end_at = parse_boundary(start), parse_boundary(end)
    settings = LoadSettings(
        bootstrap,
        skip_unreadable,
        accept_loss,
        null_bad_timestamps=on_bad_timestamp == "null",
        decode=decode,
        dead_timestamps=on_bad_timestamp == "dead-letter",
        events=events or EventSettings(),
        sizes=sizes or FileSizes(),
    )
    require_readable(decode, format)
    run = Workers(
        spark_settings,
        master=master,
        spark_session=spark_session,
        runner=runner,
        on_progress=on_progress,
        lag_s=lag_s,
        on_step=on_step,
    )
    steps = Steps(on_step)

    with as_storage_error(place):
        with closing(connect(bootstrap)) as cluster:
            # Wrong words, a mistyped topic among them, leave no empty table behind.
            asked = cluster.describe(topic)
            require_boundaries(cluster, asked, start_at, end_at)
            if dead_letter_topic is not None:
                cluster.topic_id(dead_letter_topic)
            table = open_table(
                target, format, store_options, steps.reached, into_existing=into_existing
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
        on_step("planned")
        if plan.is_empty and not plan.moves_watermark(settings):
            removed = table.remove_orphans()
            if group is not None and before is not None:
                commit_positions(group, before, bootstrap)
            if dead_letter_topic is not None and before is not None:
                # Those of a load that was killed before it had sent them.
                send_letters(target, dead_letter_topic, bootstrap, store_options)
            seconds = time.monotonic() - began
            return LoadResult(before, 0, 0, seconds, (), tuple(removed), held_back=held)
        manifest = commit_plan(table, plan, settings, run, steps, on_step)
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
