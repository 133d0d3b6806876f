"""A changelog table: one row of each key of a topic, brought up to date again and again.

    describe topic → ranges from where the last run ended → changes by bucket → buckets merged
    → ledger → manifest

A further run applies only new changes. If a run is killed, it is either committed as a whole or not
at all. Of two runs at once, one commits and the other raises `LoadLost`.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Unpack

from ottla.base.errors import OttlaError, WrongWords
from ottla.lake.job.options import ChangelogOptions
from ottla.lake.job.result import LoadResult
from ottla.lake.job.runner import workers_of
from ottla.lake.job.spilled import FOLDER as WORK_FOLDER
from ottla.lake.model.chain import HIDDEN_FOLDER
from ottla.lake.model.option import filled
from ottla.lake.model.plan import parse_boundary
from ottla.lake.source.boundaries import require_boundaries
from ottla.lake.source.cluster import connect
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.commit import Steps
from ottla.lake.tables.opening import open_table, place_of
from ottla.lake.write.changelog_writer import Applied, ChangelogWishes, ChangelogWriter
from ottla.lake.write.dead_letters import send_letters
from ottla.lake.write.follow_tries import Tries
from ottla.lake.write.settings import settings_of
from ottla.lake.write.table_schema import require_readable


def changelog(topic: str, target: str, **options: Unpack[ChangelogOptions]) -> LoadResult:
    """Bring the changelog table in `target`, a folder or a URL, up to date with `topic`.

    The table has the latest record of each key (`kind`: `latest`), or every record with the time
    for which it held (`history`). A record with a null value deletes its key, and so does a
    Debezium envelope with the operation `d`. Keys are spread over `buckets`, whose number the first
    run decides; each run rewrites the files of the buckets that have changes.

    A record without a key fails the run, unless `on_null_key` is `skip`: then the ledger counts it
    as keyless. A record that can't be decoded fails the run or is a dead letter, as `on_bad_record`
    says; its key keeps its previous row. `rows` of the result are the changes that were read.

    With `every` it runs again after each such interval until `watch.stop` is set, and calls
    `watch.on_run` with each result; if two run like that, the older one stops. If
    `delete.retention.ms` has passed since the table's last run, compaction may have removed
    deletions that the table has not read. That fails the run (RecordsLost), unless `accept_loss` is
    set. With `reconcile` the log is read again from its start, and rows that it no longer has are
    removed.

    All other options are as in `load`. Raises OttlaError (LoadLost if another run committed
    meanwhile; FencedWriter; then nothing changes).
    """
    given = filled(ChangelogOptions, options)
    watch, store_options = given["watch"], given["store_options"]
    dead_letter_topic = given["dead_letter_topic"]
    every = given["every"]
    start_at, end_at = parse_boundary(given["start"]), parse_boundary(given["end"])
    settings = settings_of(given)
    bootstrap = settings.bootstrap
    require_readable(settings.decode, given["format"])
    if given["reconcile"] and every is not None:
        raise WrongWords("a table is reconciled in one run: leave out how often it runs (--every)")
    workers = workers_of(given, watch)
    steps = Steps(watch.on_step)

    def run() -> LoadResult:
        began = time.monotonic()
        applied = writer.apply(start_at, end_at, workers, given["override"])
        if dead_letter_topic is not None:
            send_letters(target, dead_letter_topic, bootstrap, store_options)
        return _result(applied, time.monotonic() - began)

    with as_storage_error(place_of(target, store_options)):
        with closing(connect(bootstrap)) as cluster:
            # Check these first, so that invalid options or a mistyped topic create no empty table.
            asked = cluster.describe(topic)
            require_boundaries(cluster, asked, start_at, end_at)
            if dead_letter_topic is not None:
                cluster.topic_id(dead_letter_topic)
        table = open_table(target, given["format"], store_options, steps.reached)
        table.store.prepare((f"{HIDDEN_FOLDER}/", WORK_FOLDER))
        wishes = ChangelogWishes(
            given["kind"],
            given["buckets"],
            given["on_null_key"],
            given["group"],
            given["reconcile"],
        )
        writer = ChangelogWriter(table, topic, settings, wishes, steps, watch.on_step)
        if every is None:
            return run()
        writer.take_over(start_at)
        watch.on_step("following")
        stop = watch.stop or threading.Event()
        tries = Tries(stop, watch.on_trouble, watch.on_recovery)
        return _again_and_again(run, int(every), stop, watch.on_run, tries)


def _again_and_again(
    run: Callable[[], LoadResult],
    every_ms: int,
    stop: threading.Event,
    on_run: Callable[[LoadResult], None],
    tries: Tries,
) -> LoadResult:
    """Run until `stop` is set, and return the last result. Failures are retried as `tries` says."""
    result = LoadResult(None, 0, 0, 0.0, (), ())
    while not stop.is_set():
        try:
            result = run()
        except OttlaError as error:
            tries.failed(error)
            continue
        tries.succeeded()
        on_run(result)
        stop.wait(every_ms / 1000)
    return result


def _result(applied: Applied, seconds: float) -> LoadResult:
    manifest = applied.manifest
    if manifest is None or not applied.is_new:
        return LoadResult(manifest, 0, 0, seconds, (), applied.removed)
    return LoadResult(
        manifest,
        sum(ledger.loaded for ledger in manifest.ledgers),
        len(manifest.files),
        seconds,
        manifest.ledgers,
        applied.removed,
        manifest.skipped,
    )
