"""Runs the tasks of one call: in this process, on Spark, or by a runner of the caller."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from ottla.lake.job.here import run_here
from ottla.lake.job.on_spark import run_on_spark, warm_up
from ottla.lake.job.progress import OnProgress, Share, progress_of
from ottla.lake.job.session import SparkSettings, checked_settings, session
from ottla.lake.job.task import OnDone, R, Runner, Task


class Workers:
    """Runs tasks by the options of a call. Spark is started with the first tasks."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        spark_session: Any = None,
        runner: Runner | None = None,
        on_progress: OnProgress | None = None,
        lag_s: float | None = None,
        on_step: Callable[[str], None] = lambda _step: None,
        consequence: str = "nothing was committed, since",
    ) -> None:
        """Call `on_progress` with each job's progress; `lag_s` is the table's lag before the load.

        Raises OttlaError if `master` is invalid, or Spark is missing.
        """
        has_own = runner is not None or spark_session is not None
        self._settings = checked_settings(settings, has_own=has_own)
        self._session = spark_session
        self._runner = runner
        self._on_progress = on_progress
        self._lag_s = lag_s
        self._on_step = on_step
        self._consequence = consequence

    @property
    def are_here(self) -> bool:
        """Return whether tasks run in this process."""
        return self._runner is run_here or (self._runner is None and self._settings.is_here)

    def __call__(self, tasks: Sequence[Task[R]], /) -> list[R]:
        if not tasks:
            return []
        report = None if self._on_progress is None else _reporter(tasks, self)
        if report is not None:
            report(0)
        results = self._run(tasks, report)
        if report is not None:
            report(len(tasks))
        return results

    def _run(self, tasks: Sequence[Task[R]], report: OnDone | None) -> list[R]:
        if self._runner is not None:
            return self._runner(tasks)
        if self._settings.is_here:
            return run_here(tasks) if report is None else run_here(tasks, report)
        return run_on_spark(self._started(), tasks, report, self._consequence)

    def _started(self) -> Any:
        if self._session is None:
            self._session = session(self._settings)
            self._on_step("spark started")
        return self._session

    def start(self) -> None:
        """Start Spark, where tasks will run on it."""
        if self._runner is None and not self._settings.is_here:
            self._started()

    def warm_up(self) -> None:
        """Start slow things, such as Spark, before the first tasks."""
        if self._runner is None and not self._settings.is_here:
            warm_up(self._started())

    def report(self, shares: Sequence[Share], done: int, elapsed_s: float) -> None:
        """Report the progress of a job."""
        if self._on_progress is not None:
            self._on_progress(progress_of(shares, done, elapsed_s, self._lag_s))


def _reporter(tasks: Sequence[Task[R]], workers: Workers) -> OnDone:
    shares = [Share(task.offsets, task.size_bytes) for task in tasks]
    began = time.monotonic()
    return lambda done: workers.report(shares, min(done, len(shares)), time.monotonic() - began)
