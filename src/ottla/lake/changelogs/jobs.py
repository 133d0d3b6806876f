"""What runs the jobs of a changelog: Spark, or this process."""

from collections.abc import Callable, Sequence
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
    """Run jobs in this process, one after another, without Spark."""
    del sizes
    return [run(job) for job in jobs]
