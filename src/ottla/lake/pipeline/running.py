"""One run of a pipeline: look, load, write down the numbers and the report."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.changelogs.keeping import changelog
from ottla.lake.cluster import LOAD_PATIENCE_S
from ottla.lake.events.times import EventSettings
from ottla.lake.job.progress import OnProgress
from ottla.lake.loading import LoadResult, load
from ottla.lake.loads.file_sizes import FileSizes
from ottla.lake.pipeline.commits import bytes_of_files, terms_of
from ottla.lake.pipeline.decoding import decode_of
from ottla.lake.pipeline.looking import look, status
from ottla.lake.pipeline.metrics import RunNumbers, samples, write_metrics
from ottla.lake.pipeline.planned import PlannedLoad
from ottla.lake.pipeline.reporting import write_report
from ottla.lake.pipeline.settings import Pipeline
from ottla.lake.pipeline.status import TableStatus
from ottla.lake.stream.outages import is_outage


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What was found before the load, and what the load did."""

    planned: PlannedLoad
    done: LoadResult


def run(
    pipeline: Pipeline,
    *,
    on_planned: Callable[[PlannedLoad], None] = lambda _planned: None,
    on_progress: OnProgress = lambda _progress: None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> PipelineRun:
    """Load once what `pipeline` says. Raises OttlaError; the numbers say so, too.

    RecordsLost where records are gone before they were loaded.
    """
    began = time.monotonic()
    try:
        planned = look(pipeline, LOAD_PATIENCE_S)
        on_planned(planned)
        if pipeline.is_changelog:
            done = changelog(
                **changelog_arguments(pipeline, planned.lag_s, on_progress),
                end=pipeline.end,
                on_step=on_step,
            )
        else:
            done = load(
                **load_arguments(pipeline),
                spark_settings=pipeline.spark,
                on_progress=on_progress,
                lag_s=planned.lag_s,
                on_step=on_step,
            )
    except OttlaError as error:
        # What failed is said, whatever becomes of the file; of brokers that are away, at once.
        bootstrap = None if is_outage(error) else pipeline.bootstrap
        with suppress(OttlaError):
            write_down(pipeline, None, time.monotonic() - began, bootstrap)
        raise
    write_down(pipeline, done, time.monotonic() - began, pipeline.bootstrap)
    return PipelineRun(planned, done)


def load_arguments(pipeline: Pipeline) -> dict[str, Any]:
    """What `load` takes of a pipeline."""
    return {
        "topic": pipeline.topic,
        "target": pipeline.table,
        "bootstrap": pipeline.bootstrap,
        "start": pipeline.start,
        "end": pipeline.end,
        "group": pipeline.group,
        "skip_unreadable": pipeline.skip_unreadable,
        "accept_loss": pipeline.accept_loss,
        "on_bad_timestamp": pipeline.on_bad_timestamp,
        "format": pipeline.format,
        "events": pipeline.events,
        "sizes": pipeline.sizes,
        "store_options": pipeline.store_options,
        "decode": decode_of(pipeline),
    }


def changelog_arguments(
    pipeline: Pipeline, lag_s: float | None, on_progress: OnProgress
) -> dict[str, Any]:
    """What `changelog` takes of a pipeline, apart from its end, which one that follows has not."""
    found = load_arguments(pipeline)
    if (found.pop("events"), found.pop("sizes")) != (EventSettings(), FileSizes()):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"a table with the {pipeline.kind} of each key has files by key: event times and sizes "
            "of files in [target] are for kind = rows",
        )
    del found["end"]
    found |= {"kind": pipeline.kind, "on_null_key": pipeline.on_null_key}
    seen = {"on_progress": on_progress, "lag_s": lag_s}
    return {**found, "spark_settings": pipeline.spark, **seen}


def follow_arguments(pipeline: Pipeline) -> dict[str, Any]:
    """What `follow` takes of a pipeline, apart from how often it commits."""
    found = load_arguments(pipeline)
    if found["end"] == "latest":
        del found["end"]  # The default: it follows until it is stopped.
    return {**found, "spark_settings": pipeline.spark}


def write_down(
    pipeline: Pipeline, done: LoadResult | None, seconds: float, bootstrap: str | None
) -> None:
    """Write the files of [report]; how far the topic is ahead, where `bootstrap` is given.

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
