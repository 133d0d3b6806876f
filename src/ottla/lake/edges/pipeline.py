"""Runs or follows a pipeline, and writes its metrics and its report.

The more commits a table has, the longer it takes to collect metrics and report. So while a pipeline
follows, each is written at most once in its interval, and in a small part of the time. At the end
both are written.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.edges.metrics import RunNumbers, samples, write_metrics
from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.planned_load import look
from ottla.lake.edges.report import write_report
from ottla.lake.edges.status import TableStatus, status
from ottla.lake.job.options import ChangelogOptions, FollowOptions, LoadOptions, RowOptions
from ottla.lake.job.progress import UNWATCHED, FollowProgress, Observer
from ottla.lake.job.task import LoadResult
from ottla.lake.model.option import declared
from ottla.lake.source.cluster import LOAD_PATIENCE_S, is_outage
from ottla.lake.write.changelog import changelog
from ottla.lake.write.follow import follow
from ottla.lake.write.load import load

_METRICS_EVERY_S = 10.0
_REPORT_EVERY_S = 60.0
# Writing takes at most a twentieth of the time.
_SHARE = 20.0


def run(pipeline: Pipeline, *, watch: Observer = UNWATCHED) -> LoadResult:
    """Run one load of `pipeline`. A failure is written to the metrics, and raised.

    Raises OttlaError (RecordsLost if records were deleted before they were loaded).
    """
    began = time.monotonic()
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
            _write_metrics(pipeline, None, time.monotonic() - began, bootstrap)
        raise
    _write_report(pipeline, done)
    _write_metrics(pipeline, done, done.seconds, pipeline.bootstrap)
    return done


def follow_pipeline(pipeline: Pipeline, **options: Unpack[FollowOptions]) -> None:
    """Follow with the options of `pipeline`, which `options` override. Raises OttlaError."""
    given = pipeline.options_of(FollowOptions)
    if given.get("end") == "latest":
        del given["end"]  # This is the default: follow until stopped.
    given.update(options)
    watch = given.get("watch", UNWATCHED)
    writer = _Writer(pipeline, watch.on_trouble)

    def committed(progress: FollowProgress) -> None:
        watch.on_commit(progress)
        one = progress.manifest
        writer.committed(
            LoadResult(one, one.rows, len(one.files), progress.seconds, one.ledgers, ())
        )

    with writer.of_run():
        given["watch"] = replace(watch, on_commit=committed, on_trouble=writer.after_trouble)
        follow(pipeline.topic, pipeline.table, **given)


def keep_pipeline(pipeline: Pipeline, **options: Unpack[ChangelogOptions]) -> None:
    """Update the changelog table of `pipeline` once, or with `every` until it is stopped."""
    given = _changelog_options(pipeline)
    if options.get("every") is not None:
        given.pop("end", None)
    given.update(options)
    watch = given.get("watch", UNWATCHED)
    writer = _Writer(pipeline, watch.on_trouble)

    def applied(done: LoadResult) -> None:
        watch.on_run(done)
        if done.ledgers:
            writer.committed(done)

    with writer.of_run():
        given["watch"] = replace(watch, on_run=applied, on_trouble=writer.after_trouble)
        done = changelog(pipeline.topic, pipeline.table, **given)
        if given.get("every") is None:
            applied(done)


def _changelog_options(pipeline: Pipeline) -> ChangelogOptions:
    """Return the options of `changelog`. Raises OttlaError for options of tables of rows."""
    of_rows = declared(RowOptions).keys() - declared(ChangelogOptions).keys()
    if of_rows & pipeline.options.keys():
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a table with the {pipeline.kind} of each key has files by key: event times and sizes "
            "of files in [target] are for kind = rows",
        )
    options = pipeline.options_of(ChangelogOptions)
    # In a file this option says how often a follow runs.
    options.pop("every", None)
    return options


class NextWrite:
    """Decides when metrics or report are due to be written again."""

    def __init__(self, every_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._now_s = now_s
        self._next_s = float("-inf")

    def is_now(self) -> bool:
        return self._now_s() >= self._next_s

    def done(self, began_s: float) -> None:
        """Record that writing, which began at `began_s`, is complete."""
        now_s = self._now_s()
        self._next_s = now_s + max(self._every_s, _SHARE * (now_s - began_s))


class _Writer:
    """Writes the metrics and the report of a pipeline's newest commit."""

    def __init__(self, pipeline: Pipeline, on_trouble: Callable[[OttlaError], None]) -> None:
        self._pipeline = pipeline
        self._on_trouble = on_trouble
        self._metrics = NextWrite(_METRICS_EVERY_S)
        self._report = NextWrite(_REPORT_EVERY_S)
        self._unwritten: LoadResult | None = None

    def committed(self, done: LoadResult) -> None:
        self._unwritten = done
        self._write(done, metrics=self._metrics.is_now(), report=self._report.is_now())

    def failed(self) -> None:
        """Write the metrics of a failure, without metrics of the table or the report."""
        # The failure itself is raised, even if the file cannot be written.
        with suppress(OttlaError):
            _write_numbers(self._pipeline, None, 0.0, None)
        self._metrics = NextWrite(_METRICS_EVERY_S)

    def after_trouble(self, error: OttlaError) -> None:
        """Write the metrics of a failure that is retried."""
        self._on_trouble(error)
        self.failed()

    @contextmanager
    def of_run(self) -> Iterator[None]:
        """Write metrics and report at the end of a follow, or the metrics of its failure."""
        try:
            yield
        except OttlaError:
            self.failed()
            raise
        if self._unwritten is not None:
            self._write(self._unwritten, metrics=True, report=True)

    def _write(self, done: LoadResult, *, metrics: bool, report: bool) -> None:
        pipeline = self._pipeline
        if metrics:
            with self._timed(self._metrics):
                _write_metrics(pipeline, done, done.seconds, pipeline.bootstrap)
        if report:
            with self._timed(self._report):
                _write_report(pipeline, done)
        if metrics and report:
            self._unwritten = None

    @contextmanager
    def _timed(self, due: NextWrite) -> Iterator[None]:
        began_s = time.monotonic()
        try:
            yield
        except OttlaError as error:
            # Report the error, but go on: the table matters more than these files.
            self._on_trouble(error)
        due.done(began_s)


def _write_report(pipeline: Pipeline, done: LoadResult) -> None:
    """Write the report, if the pipeline has one. Raises OttlaError."""
    if pipeline.html is not None and done.manifest is not None:
        write_report(pipeline.html, pipeline.table, pipeline.bootstrap, pipeline.store_options)


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
    _write_numbers(pipeline, done, seconds, found)


def _write_numbers(
    pipeline: Pipeline, done: LoadResult | None, seconds: float, found: TableStatus | None
) -> None:
    if pipeline.metrics is not None:
        numbers = RunNumbers.of(done, seconds)
        write_metrics(pipeline.metrics, samples(pipeline.topic, pipeline.table, numbers, found))
