"""A task: a part of a job that runs by itself, in this process or on a worker of Spark."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# Too many bytes to share a task of Spark with others.
ALONE = 1 << 62


class Task(Protocol[R_co]):
    """Is pickled to a worker and run there; its result is pickled back.

    A worker may run it twice, so that each attempt has to write files of names of its own.
    """

    @property
    def size_bytes(self) -> int:
        """About how much it reads: small ones share a task of Spark."""
        ...

    @property
    def offsets(self) -> int:
        """How many offsets of a topic it reads."""
        ...

    def run(self) -> R_co:
        """Do it. Raises OttlaError; no file of it stays then."""
        ...


class Runner(Protocol):
    """Runs tasks, and returns their results in the same order."""

    def __call__(self, tasks: Sequence[Task[R]], /) -> list[R]: ...


# Is called with the number of tasks that are done.
OnDone = Callable[[int], None]


def ignore_done(_count: int) -> None:
    """Report nothing."""
