"""What runs the tasks of a load and says how many are done: this process, or Spark."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ottla.lake import spark, task
from ottla.lake.changelogs.jobs import JobRunner, run_jobs_here
from ottla.lake.changelogs.reducing import ReduceJob
from ottla.lake.loads.committing import Runner
from ottla.lake.pipeline.progress import Progress, Share, progress_of
from ottla.lake.session import SparkSettings, checked_settings, session
from ottla.lake.splitting import joined
from ottla.lake.task import Task, TaskResult

# How often Spark is asked for its tasks.
_POLL_S = 0.5

OnProgress = Callable[[Progress], None]
Job = TypeVar("Job")


def runner_of(
    settings: SparkSettings,
    lag_s: float | None,
    on_progress: OnProgress,
    on_step: Callable[[str], None],
) -> Runner:
    """Return what runs the tasks of one load. `lag_s` is the table's lag at its start.

    Raises OttlaError for a wrong master, and where Spark is needed and not installed.
    """
    if checked_settings(None, settings, has_own=False).is_here:
        return runner_here(lag_s, on_progress)

    def run(planned: Sequence[Task]) -> list[TaskResult]:
        started = session(settings)
        on_step("spark started")
        return runner_on(started, lag_s, on_progress)(planned)

    return run


def runner_on(started: Any, lag_s: float | None, on_progress: OnProgress) -> Runner:
    """Return what runs the tasks of one load on the session `started`."""

    def run(planned: Sequence[Task]) -> list[TaskResult]:
        groups = joined([one.log_bytes for one in planned])
        shares = [_share([planned[place] for place in group]) for group in groups]
        report = _reporter(shares, lag_s, on_progress)
        report(0)
        with _watched(started, report, len(shares)):
            results = spark.run_tasks(started, planned)
        report(len(shares))
        return results

    return run


def runner_here(lag_s: float | None, on_progress: OnProgress) -> Runner:
    """Return what runs the tasks of one load in this process."""

    def run(planned: Sequence[Task]) -> list[TaskResult]:
        report = _reporter([_share([one]) for one in planned], lag_s, on_progress)
        results = []
        for number, one in enumerate(planned):
            report(number)
            results.append(task.run(one, uuid.uuid4().hex[:12]))
        report(len(planned))
        return results

    return run


def jobs_on(
    started: Any, consequence: str, lag_s: float | None, on_progress: OnProgress
) -> JobRunner:
    """Return what runs the jobs of a changelog on the session `started`, stage by stage."""

    def runner(jobs: Sequence[Job], run: Callable[[Job], str], sizes: Sequence[int]) -> list[str]:
        shares = [
            Share(
                sum(_offsets(jobs[place]) for place in group), sum(sizes[place] for place in group)
            )
            for group in joined(sizes)
        ]
        report = _reporter(shares, lag_s, on_progress)
        report(0)
        with _watched(started, report, len(shares)):
            texts = spark.run_jobs(started, jobs, run, sizes, consequence)
        report(len(shares))
        return texts

    return runner


def jobs_here(lag_s: float | None, on_progress: OnProgress) -> JobRunner:
    """Return what runs the jobs of a changelog in this process."""

    def runner(jobs: Sequence[Job], run: Callable[[Job], str], sizes: Sequence[int]) -> list[str]:
        shares = [Share(_offsets(job), size) for job, size in zip(jobs, sizes, strict=True)]
        report = _reporter(shares, lag_s, on_progress)
        done, counting = 0, threading.Lock()
        report(0)

        def counted(job: Job) -> str:
            nonlocal done
            text = run(job)
            with counting:
                done += 1
                report(done)
            return text

        return run_jobs_here(jobs, counted, sizes)

    return runner


def _offsets(job: object) -> int:
    """Only the first stage of a changelog reads offsets."""
    return job.wanted.end - job.wanted.start if isinstance(job, ReduceJob) else 0


def _share(planned: Sequence[Task]) -> Share:
    offsets = sum(one.wanted.end - one.wanted.start for one in planned)
    return Share(offsets, sum(one.log_bytes for one in planned))


def _reporter(
    shares: Sequence[Share], lag_s: float | None, on_progress: OnProgress
) -> Callable[[int], None]:
    began = time.monotonic()

    def report(done: int) -> None:
        done = min(done, len(shares))
        on_progress(progress_of(shares, done, time.monotonic() - began, lag_s))

    return report


@contextmanager
def _watched(started: Any, report: Callable[[int], None], count: int) -> Iterator[None]:
    """Report how many tasks are done of the one job of `count` tasks that runs meanwhile.

    The last one counts when the results are here, which the caller reports.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # An extra, and slow to import.

    try:
        context = started.sparkContext
    except PySparkException:
        context = None  # Spark Connect has none, and reports by itself.

    def watched(done: int) -> None:
        report(min(done, count - 1))

    with _of_connect(started, watched) if context is None else _of_context(context, watched):
        yield


@contextmanager
def _of_context(context: Any, report: Callable[[int], None]) -> Iterator[None]:
    group, over = f"ottla-{uuid.uuid4().hex}", threading.Event()
    tracker = context.statusTracker()
    before = {name: context.getLocalProperty(name) for name in _GROUP_PROPERTIES}
    context.setJobGroup(group, "ottla lake load")

    def watch() -> None:
        while not over.wait(_POLL_S):
            report(_done(tracker, group))

    watcher = threading.Thread(target=watch, name="ottla-lake-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        for name, value in before.items():
            context.setLocalProperty(name, value)


_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


def _done(tracker: Any, group: str) -> int:
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        known = tracker.getJobInfo(job)
        stages = [tracker.getStageInfo(stage) for stage in known.stageIds] if known else []
        done += sum(stage.numCompletedTasks for stage in stages if stage)
    return done


@contextmanager
def _of_connect(started: Any, report: Callable[[int], None]) -> Iterator[None]:
    def handler(stages: Any, **_: Any) -> None:
        report(sum(stage.num_completed_tasks for stage in stages or ()))

    started.registerProgressHandler(handler)
    try:
        yield
    finally:
        started.removeProgressHandler(handler)
