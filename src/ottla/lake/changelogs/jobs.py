"""What runs the jobs of a changelog: Spark, or this process."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

Job = TypeVar("Job")


class JobRunner(Protocol):
    """Runs jobs, each to a text; returns the texts in any order."""

    def __call__(
        self, jobs: Sequence[Job], run: Callable[[Job], str], sizes: Sequence[int]
    ) -> list[str]: ...


def run_jobs_here(
    jobs: Sequence[Job], run: Callable[[Job], str], sizes: Sequence[int]
) -> list[str]:
    """Run jobs in this process, without Spark: a few more at once than it has cores.

    So some compute while others wait for brokers and disks.
    """
    del sizes
    pool = ThreadPoolExecutor((os.cpu_count() or 1) + 2)
    try:
        return list(pool.map(run, jobs))
    finally:
        # Where one has failed the others end, or are not begun, before their files are removed.
        pool.shutdown(cancel_futures=True)
