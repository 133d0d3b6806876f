"""Callbacks for a caller while a load, a follow or a changelog runs."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.lake.job.follow_progress import FollowProgress
from ottla.lake.job.progress import OnProgress
from ottla.lake.job.result import LoadResult


@dataclass(frozen=True, slots=True)
class Observer:
    """Functions that are called during a run, in the thread of the call or of its tasks."""

    # Called with the name of each completed step.
    on_step: Callable[[str], None] = lambda _step: None
    # Called with the progress of a commit's tasks.
    on_progress: OnProgress | None = None
    # Called with each commit of a follow, and each run of a repeated changelog.
    on_commit: Callable[[FollowProgress], None] = lambda _progress: None
    on_run: Callable[[LoadResult], None] = lambda _result: None
    # Called with each failure that is retried; for an outage once, and at its end with its seconds.
    on_trouble: Callable[[OttlaError], None] = lambda _error: None
    on_recovery: Callable[[float], None] = lambda _seconds: None
    # Stops a repeated run after its current commit.
    stop: threading.Event | None = None
    # For progress: the age of the oldest record that the table lacked at the start.
    lag_s: float | None = None


UNWATCHED = Observer()
