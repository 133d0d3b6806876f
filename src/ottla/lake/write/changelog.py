"""Keeps a changelog table up to date: one row for each key of a topic.

    describe topic → ranges from where the last run ended → changes by bucket → buckets merged
    → ledger → manifest

A further run applies only new changes. If a run is killed, it is either committed as a whole or not
at all. Of two runs at once, one commits and the other raises `CommitConflict`.
"""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Unpack

from ottla.base.errors import OttlaError, WrongWords
from ottla.lake.job.options import ChangelogOptions
from ottla.lake.job.spilled import FOLDER as WORK_FOLDER
from ottla.lake.job.spilled import remove_work
from ottla.lake.job.task import LoadResult, load_result
from ottla.lake.model.chain import HIDDEN_FOLDER
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Boundary, parse_boundary
from ottla.lake.source.cluster import connect
from ottla.lake.tables.table import committed_before
from ottla.lake.write.changelog_plan import (
    Changes,
    changes_applied,
    kept_by,
    partitions_again,
    positions_pinned,
)
from ottla.lake.write.changelog_state import read_state_of, remove_hidden_orphans
from ottla.lake.write.settings import settings_of
from ottla.lake.write.table_schema import require_readable
from ottla.lake.write.topic_writer import TopicWriter, opened_for
from ottla.lake.write.tries import Tries


def changelog(topic: str, target: str, **options: Unpack[ChangelogOptions]) -> LoadResult:
    """Bring the changelog table in `target`, a folder or a URL, up to date with `topic`.

    The table has the latest record of each key (`kind`: `latest`), or every record with the time
    span in which it was the latest (`history`). A record with a null value deletes its key, and so
    does a Debezium envelope with the operation `d`. Keys are spread over `buckets`. The first run
    decides their number, and each run rewrites the files of the buckets that have changes.

    A record without a key fails the run, unless `on_null_key` is `skip`: then the ledger counts it
    as keyless. `on_bad_record` says whether a record that can't be decoded fails the run or becomes
    a dead letter; its key keeps its previous row. `rows` of the result are the changes that were
    read.

    With `every`, the changelog runs again after each such interval until `watch.stop` is set, and
    calls `watch.on_run` with each result. If two processes do so for one table, the one that
    started first stops. If `delete.retention.ms` has passed since the table's last run, compaction
    may have removed deletions that the table has not read. That fails the run (RecordsLost), unless
    the loss is accepted. With `reconcile` the log is read again from its start, and rows whose
    records it no longer has are removed.

    All other options are as in `load`. Raises OttlaError. After CommitConflict (another run
    committed meanwhile) and WriterFenced (a later process took the table over) nothing has changed.
    """
    given = filled(ChangelogOptions, options)
    watch, every = given["watch"], given["every"]
    start, end = parse_boundary(given["start"]), parse_boundary(given["end"])
    settings = settings_of(given)
    require_readable(settings.decode, given["format"])
    if given["reconcile"] and every is not None:
        raise WrongWords("a table is reconciled in one run: leave out how often it runs (--every)")
    reduce = partial(positions_pinned, given)
    with opened_for(
        topic, target, given, settings, reduce, (start, end), kind="changelog"
    ) as writer:
        writer.table.store.prepare((f"{HIDDEN_FOLDER}/", WORK_FOLDER))
        run = partial(_run, writer, given, start, end)
        if every is None:
            return run()
        writer.take_over(start, settings, given["override"])
        watch.on_step("following")
        stop = watch.stop or threading.Event()
        tries = Tries(stop, watch.on_error, watch.on_recovery)
        return _again_and_again(run, int(every), stop, watch.on_run, tries)


def _run(
    writer: TopicWriter, given: ChangelogOptions, start: Boundary, end: Boundary
) -> LoadResult:
    """Apply the new changes. Raises OttlaError; CommitConflict and WriterFenced change nothing."""
    began_s, settings = time.monotonic(), writer.settings
    with closing(connect(settings.bootstrap)) as cluster:
        base = writer.base(cluster, given["override"])
        plan = writer.plan(cluster, base, start, end)
    kept = kept_by(given, plan, settings)
    again = partitions_again(given, writer.table, plan, kept)
    writer.steps.reached("planned")
    table, is_new = writer.table, bool(again) or not plan.is_empty
    newest = plan.before
    if is_new:
        state = read_state_of(table, plan.before, plan.digest, plan.overridden)
        changes = Changes(given, kept, state, again)
        newest = writer.run_plan(plan, settings, partial(changes_applied, changes))
        with committed_before(table.store.url, newest.version):
            remove_hidden_orphans(table, state, newest)
    else:
        # Remove temporary files that a killed run left.
        remove_work(table.store, table.running)
    removed = writer.follow_up(newest, is_new=is_new)
    return load_result(newest, removed, began_s, is_new=is_new)


def _again_and_again(
    run: Callable[[], LoadResult],
    every_ms: int,
    stop: threading.Event,
    on_run: Callable[[LoadResult], None],
    tries: Tries,
) -> LoadResult:
    """Run until `stop` is set, and return the last result. `tries` handles failures."""
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
