"""Runs the tasks of one call: in this process, on Spark, or by a runner of the caller."""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ottla.lake.job.on_spark import run_on_spark, warm_up
from ottla.lake.job.options import SparkOptions
from ottla.lake.job.progress import UNWATCHED, Observer, Share, progress_of
from ottla.lake.job.session import SparkSettings, checked_settings, session
from ottla.lake.job.task import OnDone, R, Task, ignore_done

# Limits threads, because each task holds a row group in memory. There are more threads than cores,
# because tasks wait for brokers and disks.
_AT_ONCE_MAX = 8


def run_here(tasks: Sequence[Task[R]], on_done: OnDone = ignore_done) -> list[R]:
    """Run tasks in this process, with a few more threads than it has cores."""
    counting = threading.Lock()
    done = 0

    def run(task: Task[R]) -> R:
        nonlocal done
        result = task.run()
        with counting:
            done += 1
            on_done(done)
        return result

    if len(tasks) == 1:
        return [run(tasks[0])]
    pool = ThreadPoolExecutor(min(_AT_ONCE_MAX, (os.cpu_count() or 1) + 2))
    try:
        return list(pool.map(run, tasks))
    finally:
        # If a task has failed, wait for running tasks and cancel the others, so that the caller can
        # remove their files.
        pool.shutdown(cancel_futures=True)


class Workers:
    """Runs the tasks of a call, as its options say. Spark is started with the first tasks."""

    def __init__(
        self,
        options: SparkOptions,
        watch: Observer = UNWATCHED,
        consequence: str = "nothing was committed, since",
    ) -> None:
        """Check the options. Raises OttlaError if `master` is invalid, or Spark is missing.

        Progress is reported to `watch`. Errors of Spark begin with `consequence`.
        """
        self._runner = options["runner"]
        self._session = options["spark_session"]
        settings = SparkSettings(options["master"], options["name"], options["conf"] or {})
        has_own = self._runner is not None or self._session is not None
        self._settings = checked_settings(settings, has_own=has_own)
        self._watch = watch
        self._consequence = consequence

    @property
    def are_here(self) -> bool:
        """Return whether tasks run in this process."""
        return self._runner is run_here or (self._runner is None and self._settings.is_here)

    def __call__(self, tasks: Sequence[Task[R]], /) -> list[R]:
        if not tasks:
            return []
        on_progress = self._watch.on_progress
        if on_progress is None:
            return self._run(tasks, None)
        shares = [Share(task.offsets, task.size_bytes) for task in tasks]
        began_s = time.monotonic()

        def report(done: int) -> None:
            elapsed_s = time.monotonic() - began_s
            on_progress(progress_of(shares, min(done, len(shares)), elapsed_s, self._watch.lag_s))

        report(0)
        results = self._run(tasks, report)
        report(len(tasks))
        return results

    def _run(self, tasks: Sequence[Task[R]], report: OnDone | None) -> list[R]:
        if self._runner is not None:
            return self._runner(tasks)
        if self._settings.is_here:
            return run_here(tasks, report or ignore_done)
        return run_on_spark(self._started(), tasks, report, self._consequence)

    def _started(self) -> Any:
        if self._session is None:
            self._session = session(self._settings)
            self._watch.on_step("spark started")
        return self._session

    def start(self) -> None:
        """Start Spark, if tasks will run on it."""
        if self._runner is None and not self._settings.is_here:
            self._started()

    def warm_up(self) -> None:
        """Start slow things, such as Spark, before the first tasks."""
        if self._runner is None and not self._settings.is_here:
            warm_up(self._started())
