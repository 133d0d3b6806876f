"""Runs a pipeline once: plan, load, write the numbers and the report."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.edges.commits import bytes_of_files, terms_of
from ottla.lake.edges.metrics import RunNumbers, samples, write_metrics
from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.pipeline_state import look, status
from ottla.lake.edges.planned import PlannedLoad
from ottla.lake.edges.reporting import write_report
from ottla.lake.edges.status import TableStatus
from ottla.lake.job.options import ChangelogOptions, LoadOptions, RowOptions
from ottla.lake.job.progress import UNWATCHED, Observer
from ottla.lake.job.task import LoadResult
from ottla.lake.model.option import declared
from ottla.lake.source.cluster import LOAD_PATIENCE_S, is_outage
from ottla.lake.write.changelog import changelog
from ottla.lake.write.load import load


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """The plan before the load, and the result of the load."""

    planned: PlannedLoad
    done: LoadResult


def run(
    pipeline: Pipeline,
    *,
    on_planned: Callable[[PlannedLoad], None] = lambda _planned: None,
    watch: Observer = UNWATCHED,
) -> PipelineRun:
    """Run one load of `pipeline`. Raises OttlaError, and writes the failure to the numbers.

    Raises RecordsLost if records were deleted before they were loaded.
    """
    began = time.monotonic()
    try:
        planned = look(pipeline, LOAD_PATIENCE_S)
        on_planned(planned)
        watch = replace(watch, lag_s=planned.lag_s)
        if pipeline.is_changelog:
            given = changelog_options(pipeline)
            given["watch"] = watch
            done = changelog(pipeline.topic, pipeline.table, **given)
        else:
            rows = pipeline.options_of(LoadOptions)
            rows["watch"] = watch
            done = load(pipeline.topic, pipeline.table, **rows)
    except OttlaError as error:
        # The failure is raised even if the file cannot be written. Do not wait for absent brokers.
        bootstrap = None if is_outage(error) else pipeline.bootstrap
        with suppress(OttlaError):
            write_down(pipeline, None, time.monotonic() - began, bootstrap)
        raise
    write_down(pipeline, done, time.monotonic() - began, pipeline.bootstrap)
    return PipelineRun(planned, done)


def changelog_options(pipeline: Pipeline) -> ChangelogOptions:
    """Return the options for one run of `changelog`. Raises OttlaError for options of rows."""
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
    options["kind"] = "history" if pipeline.kind == "history" else "latest"
    return options


def write_down(
    pipeline: Pipeline, done: LoadResult | None, seconds: float, bootstrap: str | None
) -> None:
    """Write the files of [report], with the topic's lead if `bootstrap` is given.

    `done` is None after a run that failed. Raises OttlaError.
    """
    if done is not None and pipeline.html is not None and done.manifest is not None:
        write_report(pipeline.html, pipeline.table, bootstrap, pipeline.store_options)
    if pipeline.metrics is None:
        return
    found: TableStatus | None = None
    try:
        found = status(pipeline.table, bootstrap, pipeline.store_options)
    except OttlaError:
        if done is not None:
            raise
    numbers = RunNumbers(done is not None, time.time_ns() // 1_000_000, seconds)
    if done is not None:
        files = done.manifest.files if done.manifest and done.files else ()
        numbers = RunNumbers(
            success=True,
            ended_ms=numbers.ended_ms,
            seconds=done.seconds,
            rows=done.rows,
            files=done.files,
            size_bytes=bytes_of_files(files),
            terms=terms_of(done.ledgers),
        )
    write_metrics(pipeline.metrics, samples(pipeline.topic, pipeline.table, numbers, found))
