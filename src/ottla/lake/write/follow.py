"""`ottla lake follow`: loads a topic's new records into a table, with a commit every few seconds.

    take the table over (writer epoch + 1) → micro-batch → commit as a load does → micro-batch …

A micro-batch is an end offset for each partition. The start is always the table's positions, which
are read before each commit, so nothing is loaded twice or left out. If a follow is killed at any
step, the next one continues at these positions. If two run for one table, the one that started
first stops.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Unpack

from ottla.base.errors import OttlaError
from ottla.lake.job.options import FollowOptions
from ottla.lake.job.progress import Observer, follow_progress
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Boundary, parse_boundary
from ottla.lake.source.access import BOOTSTRAP, as_brokers
from ottla.lake.source.cluster import Cluster, connect
from ottla.lake.source.planner import StreamPlanner
from ottla.lake.source.source_options import StreamOptions, parse_options
from ottla.lake.write.load import rows_written
from ottla.lake.write.settings import row_settings_of
from ottla.lake.write.table_schema import require_readable
from ottla.lake.write.topic_writer import TopicWriter, opened_for
from ottla.lake.write.tries import Tries

# Requests are retried this long before the follow reports an outage of brokers or leaders.
_PATIENCE_S = 5.0


def follow(topic: str, target: str, **options: Unpack[FollowOptions]) -> None:
    """Load new records of `topic` into the table in `target` until `watch.stop` is set.

    A commit is made once about `max_bytes` of the log have arrived, or the interval `every` has
    passed since the previous commit; no commit has much more than `max_bytes`. With `once` it ends
    when all records that existed at the start are loaded. A stop takes effect after the current
    commit.

    Other options are those of `load`. Tasks run on Spark, unless `master` is `here` or `runner` is
    given; micro-batches are planned in this process. `watch.on_error` is called with each failure
    that is retried. An outage of brokers or leaders is reported once and retried without limit, and
    `watch.on_recovery` is called with its seconds when it ends; other failures are retried three
    times in a row. Raises OttlaError (WriterFenced if another follow was started for this table).
    """
    given = filled(FollowOptions, options)
    watch, stop = given["watch"], given["watch"].stop or threading.Event()
    settings = row_settings_of(given)
    require_readable(settings.decode, given["format"])
    start = parse_boundary(given["start"])
    once = given["once"]
    with opened_for(topic, target, given, settings, rows_written, (start,)) as writer:
        if once:
            writer.run.start()
        else:
            # Start workers before taking the table over, while an older follow still commits.
            writer.run.warm_up()
        # Columns are decided later, from the first records.
        writer.take_over(start, replace(settings, decode=None), given["override"])
        watch.on_step("following")
        every_ms = int(given["every"])
        batches = _batch_options(writer, given["bootstrap"], int(given["max_bytes"]), every_ms)
        _follow(writer, batches, stop, watch, once=once, poll_s=min(1.0, max(0.1, every_ms / 5000)))


def _batch_options(
    writer: TopicWriter, bootstrap: str, max_bytes: int, every_ms: int
) -> StreamOptions:
    words = {
        "subscribe": writer.topic,
        BOOTSTRAP: bootstrap,
        "maxBytesPerTrigger": str(max_bytes),
        "minBytesPerTrigger": str(max_bytes),
        "maxTriggerDelay": f"{every_ms}ms",
        # Lost records are detected later, from the table's positions.
        "failOnDataLoss": "false",
        "table": writer.table.store.url,
    }
    parsed = parse_options(words, start="last-load")
    return replace(parsed, access=as_brokers(writer.settings.bootstrap).access)


def _follow(
    writer: TopicWriter,
    batches: StreamOptions,
    stop: threading.Event,
    watch: Observer,
    *,
    once: bool,
    poll_s: float,
) -> None:
    """Commit micro-batches until `stop` is set. Retries start at the table's positions."""
    tries = Tries(stop, watch.on_error, watch.on_recovery)
    bootstrap = writer.settings.bootstrap

    def commit(ends: Mapping[int, int]) -> None:
        began_s = time.monotonic()
        manifest = _committed(writer, ends)
        tries.succeeded()
        if manifest is not None:
            watch.on_commit(follow_progress(manifest, bootstrap, began_s))

    while not stop.is_set():
        try:
            with closing(connect(bootstrap, _PATIENCE_S)) as cluster:
                positions = writer.base(cluster).positions or {}
            tries.reached()
            _run_batches(batches, positions, commit, stop, once=once, poll_s=poll_s)
            return
        except OttlaError as error:
            tries.failed(error)


def _run_batches(
    options: StreamOptions,
    positions: Mapping[int, int],
    commit: Callable[[Mapping[int, int]], None],
    stop: threading.Event,
    *,
    once: bool,
    poll_s: float,
) -> None:
    """Plan micro-batches from `positions` on, and `commit` each, until `stop` is set.

    With `once`, the end is the topic's end at the start. Errors of `commit` are raised.
    """
    with closing(StreamPlanner(options, positions)) as planner:
        at = planner.initial()
        if once:
            planner.fix_target()
        while not stop.is_set():
            after = planner.latest(at, limited=True)
            if after != at:
                commit({key.partition: place.offset for key, place in after.places.items()})
                at = after
            elif once:
                return
            else:
                stop.wait(poll_s)


def _committed(writer: TopicWriter, ends: Mapping[int, int]) -> Manifest | None:
    """Load from the table's positions to `ends`, or to the log's end if that is lower, and commit.

    Returns None if the table has these records already. Raises CommitConflict if another load has
    committed meanwhile, WriterFenced if a later writer has taken the table over.
    """
    with closing(connect(writer.settings.bootstrap, _PATIENCE_S)) as cluster:
        base = writer.base(cluster)
        positions = base.positions or {}
        wanted = {
            p: max(min(ends.get(p, 0), bound.end), positions.get(p, bound.log_start))
            for p, bound in base.described.bounds.items()
        }
        until = Boundary("offsets", offsets=wanted)
        plan = writer.plan(cluster, base, Boundary("earliest"), until)
        plan = replace(plan, high_watermarks=_high_watermarks(writer, cluster, base.before))
    writer.steps.reached("planned")
    if plan.is_empty:
        return None
    manifest = writer.run_plan(plan)
    writer.follow_up(manifest, is_new=True)
    return manifest


def _high_watermarks(
    writer: TopicWriter, cluster: Cluster, before: Manifest | None
) -> Mapping[int, int]:
    """Return the high watermarks if the clock advances idle partitions, else an empty mapping."""
    asked = writer.settings.events.idle_ms
    kept = before.events.idle_ms if before and before.events else None
    return {} if asked is None and kept is None else cluster.high_watermarks(writer.topic)
