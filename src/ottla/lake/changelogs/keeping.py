"""A changelog table: one row of each key of a topic, brought up to date again and again.

    describe topic → ranges from where the last run ended → changes by bucket → buckets merged
    → ledger → manifest

Running it again applies only what is new. Killed at any step it leaves either nothing that counts
or the whole run. Of two at once, one commits and the other raises `LoadLost`.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any, Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import spark
from ottla.lake.changelogs.committing import ChangesPlan, commit_changes
from ottla.lake.changelogs.jobs import JobRunner
from ottla.lake.changelogs.reducing import OnNullKey
from ottla.lake.changelogs.spilled import FOLDER as WORK_FOLDER
from ottla.lake.changelogs.spilled import remove_work
from ottla.lake.changelogs.state import read_state_of, remove_hidden_orphans
from ottla.lake.cluster import connect
from ottla.lake.folder.leftovers import Steps
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.loading import LoadResult
from ottla.lake.loads.boundaries import limits_of_load
from ottla.lake.loads.committing import (
    LoadPlan,
    LoadSettings,
    built_on,
    plan_load,
    require_no_planned_loss,
)
from ottla.lake.log.contents import HIDDEN_FOLDER
from ottla.lake.manifest import Changelog, Keeps, Manifest
from ottla.lake.plan import parse_boundary
from ottla.lake.session import SparkSettings, session
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table, place_of
from ottla.lake.telling import commit_positions

# A bucket of a new table holds the keys of about so many bytes of the first run's log.
_BUCKET_BYTES = 64 << 20
_BUCKETS_LEAST, _BUCKETS_MOST = 8, 1024
_FAILED = "nothing was committed, since"


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
    on_bad_timestamp: Literal["fail", "null"] = "fail",
    format: Format | None = None,  # noqa: A002  # The word that Spark's writers have for it.
    store_options: Mapping[str, str] | None = None,
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    runner: JobRunner | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> LoadResult:
    """Bring the changelog table in `target`, a folder or a URL, up to date with `topic`.

    The table has the latest record of each key (`kind`: `latest`), or each record of it with the
    time for which it held (`history`); a record with a null value deletes its key. Keys are spread
    over `buckets`, whose number the first run decides; each run writes the files of those buckets
    anew that it touches. A record without a key fails the run, unless `on_null_key` is `skip`: then
    the ledger counts it as keyless. `rows` of the result are the changes that were read. All else
    is as in `load`. Raises OttlaError (LoadLost, where another run committed meanwhile; nothing is
    changed).
    """
    began = time.monotonic()
    start_at, end_at = parse_boundary(start), parse_boundary(end)
    settings = LoadSettings(bootstrap, skip_unreadable, accept_loss, on_bad_timestamp == "null")
    steps = Steps()

    def on_each_step(step: str) -> None:
        steps.done.add(step)
        on_step(step)

    with as_storage_error(place_of(target, store_options)):
        with closing(connect(bootstrap)) as cluster:
            # Wrong words, a mistyped topic among them, leave no empty table behind.
            cluster.describe(topic)
            table = open_table(target, format, store_options, on_each_step)
            table.store.prepare((f"{HIDDEN_FOLDER}/", WORK_FOLDER))
            described, before, digest = built_on(table, cluster, topic, is_changelog=True)
            positions = before.positions if before else None
            limits = limits_of_load(cluster, described, start_at, end_at, positions)
            plan = plan_load(bootstrap, described, before, digest, limits)
        require_no_planned_loss(plan, settings)
        kept = _kept(before, kind, buckets, plan)
        if kept.keeps == "history":
            _require_history(on_bad_timestamp)
        on_step("planned")

        def start_runner() -> JobRunner:
            if runner is not None:
                return runner
            own = spark_session or session(spark_settings)
            on_step("spark started")
            return partial(spark.run_jobs, own, consequence=_FAILED)

        manifest = before
        if not plan.is_empty:
            state = read_state_of(table, before, digest)
            whole = ChangesPlan(plan, kept, state, on_null_key)
            manifest = commit_changes(table, whole, settings, start_runner, steps, on_step)
            remove_hidden_orphans(table, state, manifest)
        if group is not None and manifest is not None:
            commit_positions(group, manifest, bootstrap)
        removed = table.remove_orphans()
        remove_work(table.store, table.running)
    if manifest is None or plan.is_empty:
        return LoadResult(manifest, 0, 0, time.monotonic() - began, (), tuple(removed))
    return LoadResult(
        manifest,
        sum(ledger.loaded for ledger in manifest.ledgers),
        len(manifest.files),
        time.monotonic() - began,
        manifest.ledgers,
        tuple(removed),
        manifest.skipped,
    )


def _kept(
    before: Manifest | None, kind: Keeps | None, buckets: int | None, plan: LoadPlan
) -> Changelog:
    """What the table keeps: as its first run decided. Raises OttlaError for other words."""
    if before is None or before.changelog is None:
        if buckets is not None and not 0 < buckets <= _BUCKETS_MOST:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"a table has 1 to {_BUCKETS_MOST} buckets, not {buckets}",
            )
        return Changelog(kind or "latest", buckets or _buckets_for(plan))
    known = before.changelog
    if kind not in (None, known.keeps) or buckets not in (None, known.buckets):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"this table keeps the {known.keeps} of each key, in {known.buckets} buckets; make "
            "another one in a folder of its own",
        )
    return known


def _buckets_for(plan: LoadPlan) -> int:
    log_bytes = sum(sized.size_bytes for sized in plan.ranges)
    return min(_BUCKETS_MOST, max(_BUCKETS_LEAST, -(-log_bytes // _BUCKET_BYTES)))


def _require_history(on_bad_timestamp: str) -> None:
    """Raise OttlaError for records that a history can't have."""
    if on_bad_timestamp == "null":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a history needs the time of each record: it can't take records whose timestamp does "
            "not fit (on_bad_timestamp='null')",
        )
