"""Runs tasks in this process, without Spark and Java."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ottla.lake.job.task import OnDone, R, Task, ignore_done

# Some tasks compute while others wait for brokers and disks. Each holds a row group in memory.
_AT_ONCE_MAX = 8


def run_here(tasks: Sequence[Task[R]], on_done: OnDone = ignore_done) -> list[R]:
    """Run tasks in this process, a few more at once than it has cores."""
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
        # If one has failed, wait for running tasks and skip the others before files are removed.
        pool.shutdown(cancel_futures=True)
