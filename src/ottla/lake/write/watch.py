"""What a caller is shown while a load, a follow or a changelog runs."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.lake.job.progress import OnProgress
from ottla.lake.loads.result import LoadResult
from ottla.lake.stream.follow.progress import FollowProgress


@dataclass(frozen=True, slots=True)
class Observer:
    """Functions that are called meanwhile, in the thread of the call or of its tasks."""

    # With the name of each step once it is done.
    on_step: Callable[[str], None] = lambda _step: None
    # With how far the tasks of a commit are.
    on_progress: OnProgress | None = None
    # With each commit of a follow, and each run of a changelog that goes on.
    on_commit: Callable[[FollowProgress], None] = lambda _progress: None
    on_run: Callable[[LoadResult], None] = lambda _result: None
    # With a failure that is tried again; of an outage once, and then with its seconds.
    on_trouble: Callable[[OttlaError], None] = lambda _error: None
    on_recovery: Callable[[float], None] = lambda _seconds: None
    # Ends what goes on, after the commit that runs.
    stop: threading.Event | None = None
    # The age of what the table lacked at the start, for progress.
    lag_s: float | None = None


UNWATCHED = Observer()
