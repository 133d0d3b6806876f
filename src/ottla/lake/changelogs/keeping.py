"""A changelog table: one row of each key of a topic, brought up to date again and again.

    describe topic → ranges from where the last run ended → changes by bucket → buckets merged
    → ledger → manifest

Running it again applies only what is new. Killed at any step it leaves either nothing that counts
or the whole run. Of two at once, one commits and the other raises `LoadLost`.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Literal

from ottla.base.errors import OttlaError, WrongWords
from ottla.lake.changelogs.reducing import OnNullKey
from ottla.lake.changelogs.spilled import FOLDER as WORK_FOLDER
from ottla.lake.changelogs.writing import Applied, ChangelogWishes, ChangelogWriter
from ottla.lake.cluster import connect
from ottla.lake.decode.dead_letters import send_letters
from ottla.lake.decode.spec import Decode
from ottla.lake.folder.leftovers import Steps
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.job.progress import OnProgress
from ottla.lake.job.task import Runner
from ottla.lake.job.workers import Workers
from ottla.lake.loading import LoadResult
from ottla.lake.loads.boundaries import require_boundaries
from ottla.lake.loads.committing import LoadSettings
from ottla.lake.loads.typing import require_readable
from ottla.lake.log.contents import HIDDEN_FOLDER
from ottla.lake.manifest import Keeps
from ottla.lake.plan import parse_boundary
from ottla.lake.session import SparkSettings
from ottla.lake.stream.follow.tries import Tries
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table, place_of

EVERY_MS = 10_000


def changelog(
    topic: str,
    target: str,
    *,
    bootstrap: str = "localhost:9092",
    kind: Keeps | None = None,
    buckets: int | None = None,
    start: str = "last-load",
    end: str = "latest",
    group: str | None = None,
    on_null_key: OnNullKey = "fail",
    skip_unreadable: bool = False,
    accept_loss: bool = False,
    on_bad_timestamp: Literal["fail", "null", "dead-letter"] = "fail",
    decode: Decode | None = None,
    dead_letter_topic: str | None = None,
    override: str | None = None,
    reconcile: bool = False,
    format: Format | None = None,  # noqa: A002  # The word that Spark's writers have for it.
    store_options: Mapping[str, str] | None = None,
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    master: str | None = None,
    runner: Runner | None = None,
    every_ms: int | None = None,
    stop: threading.Event | None = None,
    on_run: Callable[[LoadResult], None] = lambda _result: None,
    on_trouble: Callable[[OttlaError], None] = lambda _error: None,
    on_recovery: Callable[[float], None] = lambda _seconds: None,
    on_progress: OnProgress | None = None,
    lag_s: float | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> LoadResult:
    """Bring the changelog table in `target`, a folder or a URL, up to date with `topic`.

    The table has the latest record of each key (`kind`: `latest`), or each record of it with the
    time for which it held (`history`); a record with a null value deletes its key, and so does an
    envelope of Debezium with the operation `d`. Keys are spread over `buckets`, whose number the
    first run decides; each run writes the files of those buckets anew that it touches. A record
    without a key fails the run, unless `on_null_key` is `skip`: then the ledger counts it as
    keyless. A record that can't be decoded fails it or is a dead letter, as `decode` says; its key
    keeps the row that it had. `rows` of the result are the changes that were read. With `every_ms`
    it runs again so long after each run, until `stop` is set, and calls `on_run` with what each
    did, and `on_trouble` with a failure that it tries again, `on_recovery` once brokers answer
    again; of two that run like that the one that was started later goes on. Compaction may have
    removed deletions before the table read them, where `delete.retention.ms` has passed since its
    last run: that fails the run (RecordsLost), unless `accept_loss`; with `reconcile` the log is
    read again from its start, and rows go that it no longer has. `on_progress` is
    called with the tasks of each stage; `lag_s` is the table's lag at the start.
    All else is as in `load`. Raises OttlaError (LoadLost, where another run committed meanwhile;
    FencedWriter; nothing is changed).
    """
    start_at, end_at = parse_boundary(start), parse_boundary(end)
    settings = LoadSettings(
        bootstrap,
        skip_unreadable,
        accept_loss,
        null_bad_timestamps=on_bad_timestamp == "null",
        decode=decode,
        dead_timestamps=on_bad_timestamp == "dead-letter",
    )
    require_readable(decode, format)
    if reconcile and every_ms is not None:
        raise WrongWords("a table is reconciled in one run: leave out how often it runs (--every)")
    workers = Workers(
        spark_settings,
        master=master,
        spark_session=spark_session,
        runner=runner,
        on_progress=on_progress,
        lag_s=lag_s,
        on_step=on_step,
    )
    steps = Steps(on_step)

    def run() -> LoadResult:
        began = time.monotonic()
        applied = writer.apply(start_at, end_at, workers, override)
        if dead_letter_topic is not None:
            send_letters(target, dead_letter_topic, bootstrap, store_options)
        return _result(applied, time.monotonic() - began)

    with as_storage_error(place_of(target, store_options)):
        with closing(connect(bootstrap)) as cluster:
            # Wrong words, a mistyped topic among them, leave no empty table behind.
            asked = cluster.describe(topic)
            require_boundaries(cluster, asked, start_at, end_at)
            if dead_letter_topic is not None:
                cluster.topic_id(dead_letter_topic)
        table = open_table(target, format, store_options, steps.reached)
        table.store.prepare((f"{HIDDEN_FOLDER}/", WORK_FOLDER))
        wishes = ChangelogWishes(kind, buckets, on_null_key, group, reconcile)
        writer = ChangelogWriter(table, topic, settings, wishes, steps, on_step)
        if every_ms is None:
            return run()
        writer.take_over(start_at)
        on_step("following")
        stop = stop or threading.Event()
        return _again_and_again(run, every_ms, stop, on_run, Tries(stop, on_trouble, on_recovery))


def _again_and_again(
    run: Callable[[], LoadResult],
    every_ms: int,
    stop: threading.Event,
    on_run: Callable[[LoadResult], None],
    tries: Tries,
) -> LoadResult:
    """Run until `stop` is set; return what the last run did. Failures are tried again as such."""
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
