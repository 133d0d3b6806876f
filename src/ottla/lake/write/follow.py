"""`ottla lake follow`: loads a topic's new records into a table, with a commit every few seconds.

    take the table over (writer epoch + 1) → micro-batch → commit as a load does → micro-batch …

If a follow is killed at any step, nothing is lost or doubled. When started again, it continues at
the table's positions. If two follow into one table, the older one stops.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

from ottla.base.errors import OttlaError
from ottla.lake.job.follow_progress import progress_of
from ottla.lake.job.options import FollowOptions
from ottla.lake.job.runner import workers_of
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Boundary, parse_boundary
from ottla.lake.source.access import BOOTSTRAP, Bootstrap, as_brokers
from ottla.lake.source.boundaries import require_boundaries
from ottla.lake.source.cluster import connect
from ottla.lake.source.source_options import parse_options
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.commit import Steps
from ottla.lake.tables.opening import open_table, place_of
from ottla.lake.write.dead_letters import send_letters
from ottla.lake.write.follow_batches import run_batches
from ottla.lake.write.follow_end import FollowEnd
from ottla.lake.write.follow_tries import Tries
from ottla.lake.write.follow_writer import FollowingWriter
from ottla.lake.write.settings import row_settings_of
from ottla.lake.write.table_schema import require_readable


def follow(topic: str, target: str, **options: Unpack[FollowOptions]) -> None:
    """Load new records of `topic` into the table in `target` until `watch.stop` is set.

    A commit is made once about `max_bytes` of the log have arrived, or `every` after the previous
    commit; none has much more than `max_bytes`. With `once` it ends when all records that existed
    at the start are loaded; with `end`, when the table reaches that boundary, which may be a future
    offset or time. A stop takes effect after the current commit.

    Other options are those of `load`: tasks run on Spark, unless the `master` is `here` or `runner`
    runs them; micro-batches are planned in this process. `watch.on_trouble` gets failures that are
    retried, from the table's positions: an outage of brokers or leaders without limit (reported
    once, and `watch.on_recovery` gets its seconds at its end), other failures three times in a row.
    Raises OttlaError (FencedWriter if another follow was started for this table).
    """
    given = filled(FollowOptions, options)
    watch, store_options = given["watch"], given["store_options"]
    dead_letter_topic = given["dead_letter_topic"]
    every_ms = int(given["every"])
    stop = watch.stop or threading.Event()
    settings = row_settings_of(given)
    bootstrap = settings.bootstrap
    require_readable(settings.decode, given["format"])
    run = workers_of(given, watch)
    steps = Steps(watch.on_step)

    place = place_of(target, store_options)
    start_at = parse_boundary(given["start"])
    end_at = _end(given["end"])
    once = given["once"] or end_at == Boundary("latest")
    ending = FollowEnd(stop, None if once else end_at, topic, bootstrap)
    poll_s = min(1.0, max(0.1, every_ms / 5000))
    with as_storage_error(place):
        _require_topics(bootstrap, topic, dead_letter_topic, start_at)
        table = open_table(target, given["format"], store_options, steps.reached)
        writer = FollowingWriter(
            table, topic, settings, given["group"], ending, steps, watch.on_step
        )
        source = _source_options(topic, given["bootstrap"], int(given["max_bytes"]), every_ms)
        parsed = parse_options(source | {"table": place}, start="last-load")
        parsed = replace(parsed, access=as_brokers(bootstrap).access)
        # Started before taking over, while the follow that it replaces still commits.
        if once:
            run.start()
        else:
            run.warm_up()
        writer.take_over(start_at, given["override"])
        watch.on_step("following")
        last = Tries(stop, watch.on_trouble, watch.on_recovery)

        def send_dead_letters(manifest: Manifest | None = None) -> None:
            if dead_letter_topic is not None and (manifest is None or manifest.dead_letters):
                send_letters(target, dead_letter_topic, bootstrap, store_options)

        def commit(ends: Mapping[int, int]) -> None:
            began_s = time.monotonic()
            manifest = writer.commit_to(ends, run)
            last.succeeded()
            if manifest is not None:
                watch.on_commit(progress_of(manifest, bootstrap, began_s))
                send_dead_letters(manifest)

        while not stop.is_set():
            try:
                positions = writer.positions()
                last.reached()
                # Dead letters left by a follow that was killed or could not reach the brokers.
                send_dead_letters()
                run_batches(parsed, positions, commit, ending, once=once, poll_s=poll_s)
                return
            except OttlaError as error:
                last.failed(error)


def _end(text: str | None) -> Boundary | None:
    """Return the boundary at which to end. Raises OttlaError."""
    return None if text is None else parse_boundary(text)


def _require_topics(
    bootstrap: Bootstrap,
    topic: str,
    dead_letter_topic: str | None,
    start: Boundary,
) -> None:
    """Raise OttlaError for a mistyped topic or a wrong start, before an empty table is created."""
    cluster = connect(bootstrap)
    try:
        described = cluster.describe(topic)
        require_boundaries(cluster, described, start)
        if dead_letter_topic is not None:
            cluster.topic_id(dead_letter_topic)
    finally:
        cluster.close()


def _source_options(topic: str, bootstrap: str, max_bytes: int, every_ms: int) -> dict[str, str]:
    return {
        "subscribe": topic,
        BOOTSTRAP: bootstrap,
        "maxBytesPerTrigger": str(max_bytes),
        "minBytesPerTrigger": str(max_bytes),
        "maxTriggerDelay": f"{every_ms}ms",
        # Losses are judged later, by the table's positions.
        "failOnDataLoss": "false",
    }
