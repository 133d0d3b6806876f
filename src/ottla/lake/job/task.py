"""A task: an independent part of a job, run in this process or on a Spark worker."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# The size above which a task does not share a Spark task with others.
ALONE = 1 << 62


class Task(Protocol[R_co]):
    """A task that is pickled to a worker and run there; its result is pickled back.

    A worker may run it twice, so each attempt must write files with names of its own.
    """

    @property
    def size_bytes(self) -> int:
        """Return the approximate number of bytes to read: small tasks share a Spark task."""
        ...

    @property
    def offsets(self) -> int:
        """Return how many offsets of a topic it reads."""
        ...

    def run(self) -> R_co:
        """Run the task. Raises OttlaError; then no file of it remains."""
        ...


class Runner(Protocol):
    """Runs tasks, and returns their results in the same order."""

    def __call__(self, tasks: Sequence[Task[R]], /) -> list[R]: ...


# Called with the number of completed tasks.
OnDone = Callable[[int], None]


def ignore_done(_count: int) -> None:
    """Report nothing."""
