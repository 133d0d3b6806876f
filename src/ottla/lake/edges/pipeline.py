"""Runs or follows a pipeline, and writes the metrics of its last run.

The more commits a table has, the longer it takes to collect metrics. So while a pipeline follows,
they are written at the end and at most once in an interval, which grows with the time it takes.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.edges.metrics import prometheus_text, replace_file
from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.planned_load import look
from ottla.lake.edges.status import TableStatus, status
from ottla.lake.job.options import ChangelogOptions, FollowOptions, LoadOptions
from ottla.lake.job.progress import UNWATCHED, FollowProgress, Observer
from ottla.lake.job.task import LoadResult
from ottla.lake.model.option import declared
from ottla.lake.source.cluster import LOAD_PATIENCE_S, is_outage
from ottla.lake.write.changelog import changelog
from ottla.lake.write.follow import follow
from ottla.lake.write.load import load

_EVERY_S = 10.0
# Writing metrics takes at most a twentieth of the time of a follow.
_SHARE = 20.0


def run(pipeline: Pipeline, *, watch: Observer = UNWATCHED) -> LoadResult:
    """Run one load of `pipeline`. A failure is written to the metrics, and raised.

    Raises OttlaError (RecordsLost if records were deleted before they were loaded).
    """
    began_s = time.monotonic()
    try:
        watch = replace(watch, lag_s=look(pipeline, LOAD_PATIENCE_S).lag_s)
        if pipeline.is_changelog:
            given = _changelog_options(pipeline)
            given["watch"] = watch
            done = changelog(pipeline.topic, pipeline.table, **given)
        else:
            rows = pipeline.options_of(LoadOptions)
            rows["watch"] = watch
            done = load(pipeline.topic, pipeline.table, **rows)
    except OttlaError as error:
        # Raise the failure even if the file cannot be written. Do not ask brokers in an outage.
        bootstrap = None if is_outage(error) else pipeline.bootstrap
        with suppress(OttlaError):
            _write_metrics(pipeline, None, time.monotonic() - began_s, bootstrap)
        raise
    _write_metrics(pipeline, done, done.seconds, pipeline.bootstrap)
    return done


def follow_pipeline(pipeline: Pipeline, **options: Unpack[FollowOptions]) -> None:
    """Follow with the options of `pipeline`, which `options` override. Raises OttlaError."""
    given = pipeline.options_of(FollowOptions)
    given.update(options)
    watch = given.get("watch", UNWATCHED)
    writer = _MetricsWriter(pipeline, watch)

    def committed(progress: FollowProgress) -> None:
        watch.on_commit(progress)
        one = progress.manifest
        writer.committed(
            LoadResult(one, one.rows, len(one.files), progress.seconds, one.ledgers, ())
        )

    with writer.of_run():
        given["watch"] = replace(watch, on_commit=committed, on_error=writer.after_trouble)
        follow(pipeline.topic, pipeline.table, **given)


def keep_pipeline(pipeline: Pipeline, **options: Unpack[ChangelogOptions]) -> None:
    """Update the changelog table of `pipeline` once, or with `every` until it is stopped."""
    given = _changelog_options(pipeline)
    if options.get("every") is not None:
        given.pop("end", None)
    given.update(options)
    watch = given.get("watch", UNWATCHED)
    writer = _MetricsWriter(pipeline, watch)

    def applied(done: LoadResult) -> None:
        watch.on_run(done)
        if done.ledgers:
            writer.committed(done)

    with writer.of_run():
        given["watch"] = replace(watch, on_run=applied, on_error=writer.after_trouble)
        done = changelog(pipeline.topic, pipeline.table, **given)
        if given.get("every") is None:
            applied(done)


def _changelog_options(pipeline: Pipeline) -> ChangelogOptions:
    """Return the options of `changelog`. Raises OttlaError for options of tables of rows."""
    of_rows = declared(LoadOptions).keys() - declared(ChangelogOptions).keys()
    wrong = sorted(of_rows & pipeline.options.keys())
    if wrong:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a table with the {pipeline.kind} of each key has files by key: "
            f"{', '.join(wrong)} in [target] is for kind = rows only",
        )
    options = pipeline.options_of(ChangelogOptions)
    # In a file this option says how often a follow runs.
    options.pop("every", None)
    options["kind"] = "history" if pipeline.kind == "history" else "latest"
    return options


class _MetricsWriter:
    """Writes the metrics of the newest commit of a pipeline that follows."""

    def __init__(self, pipeline: Pipeline, watch: Observer) -> None:
        self._pipeline = pipeline
        self._watch = watch
        self._next_s = 0.0  # When the metrics are due again.
        self._unwritten: LoadResult | None = None

    def committed(self, done: LoadResult) -> None:
        self._unwritten = done
        if time.monotonic() >= self._next_s:
            self._write(done)

    def after_trouble(self, error: OttlaError) -> None:
        """Write the metrics of a failure that is retried."""
        self._watch.on_error(error)
        self._failed()

    @contextmanager
    def of_run(self) -> Iterator[None]:
        """Write the metrics at the end of a follow, or those of its failure."""
        try:
            yield
        except OttlaError:
            self._failed()
            raise
        if self._unwritten is not None:
            self._write(self._unwritten)

    def _failed(self) -> None:
        """Write the metrics of a failure, without metrics of the table."""
        # The failure itself is raised, even if the file cannot be written.
        with suppress(OttlaError):
            _write(self._pipeline, None, 0.0, None)
        self._next_s = 0.0

    def _write(self, done: LoadResult) -> None:
        began_s = time.monotonic()
        try:
            _write_metrics(self._pipeline, done, done.seconds, self._pipeline.bootstrap)
        except OttlaError as error:
            # Report the error, but go on: the table matters more than this file.
            self._watch.on_error(error)
        self._next_s = next_write_s(began_s, time.monotonic())
        self._unwritten = None


def next_write_s(began_s: float, ended_s: float) -> float:
    """Return when metrics are due again, if they were written from `began_s` to `ended_s`."""
    return ended_s + max(_EVERY_S, _SHARE * (ended_s - began_s))


def _write_metrics(
    pipeline: Pipeline, done: LoadResult | None, seconds: float, bootstrap: str | None
) -> None:
    """Write the metrics, if the pipeline has a file for them. Raises OttlaError.

    They include the lag if `bootstrap` is given. `done` is None after a failed run.
    """
    if pipeline.metrics is None:
        return
    found: TableStatus | None = None
    try:
        found = status(pipeline.table, bootstrap, pipeline.store_options)
    except OttlaError:
        if done is not None:
            raise
    _write(pipeline, done, seconds, found)


def _write(
    pipeline: Pipeline, done: LoadResult | None, seconds: float, found: TableStatus | None
) -> None:
    if pipeline.metrics is not None:
        text = prometheus_text(pipeline.topic, pipeline.table, done, seconds, found)
        replace_file(pipeline.metrics, text)
