"""A pipeline that follows a topic: writes its numbers and its report after commits.

Collecting them takes longer the more commits a table has. So each is written at most once in its
interval, and writing takes at most a small part of the time. At the end both are written.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Unpack

from ottla.base.errors import OttlaError
from ottla.lake.edges.metrics import RunNumbers, samples, write_metrics
from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.pipeline_run import changelog_options, write_down
from ottla.lake.job.options import ChangelogOptions, FollowOptions
from ottla.lake.job.progress import UNWATCHED, FollowProgress
from ottla.lake.job.task import LoadResult
from ottla.lake.write.changelog import changelog
from ottla.lake.write.follow import follow

_METRICS_EVERY_S = 10.0
_REPORT_EVERY_S = 60.0
# Writing takes a twentieth of the time at most.
_SHARE = 20.0


class NextWrite:
    """Decides when a slow action is due again."""

    def __init__(self, every_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._now_s = now_s
        self._next_s = float("-inf")

    def is_now(self) -> bool:
        return self._now_s() >= self._next_s

    def done(self, began_s: float) -> None:
        """Record that the action is complete and had begun at `began_s`."""
        now_s = self._now_s()
        self._next_s = now_s + max(self._every_s, _SHARE * (now_s - began_s))


class _Writer:
    """Writes the numbers and the report of a pipeline's newest commit."""

    def __init__(self, pipeline: Pipeline, on_trouble: Callable[[OttlaError], None]) -> None:
        self._pipeline = pipeline
        self._on_trouble = on_trouble
        self._metrics = NextWrite(_METRICS_EVERY_S)
        self._report = NextWrite(_REPORT_EVERY_S)
        self._unwritten: LoadResult | None = None

    def committed(self, done: LoadResult) -> None:
        self._unwritten = done
        self._write(metrics=self._metrics.is_now(), report=self._report.is_now())

    def failed(self) -> None:
        """Write only the numbers of the failure, without the table's; the report stays."""
        path = self._pipeline.metrics
        if path is not None:
            numbers = RunNumbers(success=False, ended_ms=time.time_ns() // 1_000_000, seconds=0.0)
            # The failure itself is raised, even if the file cannot be written.
            with suppress(OttlaError):
                write_metrics(
                    path, samples(self._pipeline.topic, self._pipeline.table, numbers, None)
                )
            self._metrics = NextWrite(_METRICS_EVERY_S)

    def after_trouble(self, error: OttlaError) -> None:
        """Write the numbers of a failure that is retried."""
        self._on_trouble(error)
        self.failed()

    @contextmanager
    def of_run(self) -> Iterator[None]:
        """Write how a follow ended."""
        try:
            yield
        except OttlaError:
            self.failed()
            raise
        if self._unwritten is not None:
            self._write(metrics=True, report=True)

    def _write(self, *, metrics: bool, report: bool) -> None:
        done = self._unwritten
        assert done is not None
        if metrics and self._pipeline.metrics is not None:
            self._write_down(replace(self._pipeline, html=None), done, self._metrics)
        if report and self._pipeline.html is not None:
            self._write_down(replace(self._pipeline, metrics=None), done, self._report)
        if metrics and report:
            self._unwritten = None

    def _write_down(self, pipeline: Pipeline, done: LoadResult, due: NextWrite) -> None:
        began_s = time.monotonic()
        try:
            write_down(pipeline, done, done.seconds, pipeline.bootstrap)
        except OttlaError as error:
            # The table matters more: it is followed even if the files cannot be written.
            self._on_trouble(error)
        due.done(began_s)


def follow_pipeline(pipeline: Pipeline, **options: Unpack[FollowOptions]) -> None:
    """Follow as `pipeline` says; `options` overrule it. Raises OttlaError."""
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
    given = changelog_options(pipeline)
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
