"""A task, which runs in this process or on a Spark worker, and its result."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeVar, runtime_checkable

from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.rows.evolution import NewField
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import TopicBounds, connect
from ottla.lake.source.ledgers import settled
from ottla.ledger.partition import PartitionLedger, Unreadable

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# The size of a task that never shares a Spark task with other tasks.
ALONE = 1 << 62


class Task(Protocol[R_co]):
    """A task that runs on a worker. The task and its result are pickled.

    Spark may run it twice, so each attempt must write files with names of its own.
    """

    @property
    def size_bytes(self) -> int:
        """Return the approximate number of bytes to read. Small tasks share a Spark task."""
        ...

    @property
    def offsets(self) -> int:
        """Return the number of offsets of a topic that it reads."""
        ...

    def run(self) -> R_co:
        """Run the task. If it raises OttlaError, none of its files remain."""
        ...


@runtime_checkable
class Runner(Protocol):
    """Runs tasks, and returns their results in the same order."""

    def __call__(self, tasks: Sequence[Task[R]], /) -> list[R]: ...


# Called with the number of completed tasks.
OnDone = Callable[[int], None]


def ignore_done(_count: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task. `files` is empty if the range has no record to load."""

    ledger: PartitionLedger
    files: tuple[DataFile, ...]
    skipped: tuple[Unreadable, ...] = ()
    dead: DataFile | None = None
    # Fields that the schema lacks, each with the first offset that has it. If there are any, the
    # task's files must not be committed, and the range is read again with a larger schema.
    news: tuple[tuple[NewField, int], ...] = ()
    # The highest event time, and the number of late rows, if the table is divided by event time.
    highest_ms: int | None = None
    late: int = 0

    @property
    def written(self) -> tuple[DataFile, ...]:
        """Return all files that the task wrote, of rows and of dead letters."""
        return (*self.files, self.dead) if self.dead else self.files


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load. `manifest` is the table's newest; an earlier one if nothing was new."""

    manifest: Manifest | None
    rows: int
    files: int
    seconds: float
    ledgers: tuple[PartitionLedger, ...]
    removed: tuple[str, ...]  # Orphaned files of loads that were never committed.
    skipped: tuple[Unreadable, ...] = ()  # Offset ranges that could not be read and were skipped.
    # A line for each partition in which an open transaction holds later records back.
    held_back: tuple[str, ...] = ()


def load_result(
    newest: Manifest | None,
    removed: tuple[str, ...],
    began_s: float,
    *,
    is_new: bool,
    held_back: tuple[str, ...] = (),
) -> LoadResult:
    """Return the result of a load that began at `began_s` of the monotonic clock.

    `is_new` says that this load made the commit `newest`.
    """
    seconds = time.monotonic() - began_s
    if newest is None or not is_new:
        return LoadResult(newest, 0, 0, seconds, (), removed, held_back=held_back)
    rows, files = sum(one.loaded for one in newest.ledgers), len(newest.files)
    return LoadResult(
        newest, rows, files, seconds, newest.ledgers, removed, newest.skipped, held_back
    )


def _partition_ledgers(results: Sequence[TaskResult]) -> list[PartitionLedger]:
    """Merge the ledgers of the ranges into one ledger for each partition."""
    by_partition: dict[int, list[PartitionLedger]] = {}
    for result in sorted(results, key=lambda r: (r.ledger.partition, r.ledger.start)):
        by_partition.setdefault(result.ledger.partition, []).append(result.ledger)
    return [reduce(PartitionLedger.followed_by, parts) for _, parts in sorted(by_partition.items())]


def explained_ledgers(
    results: Sequence[TaskResult], described: TopicBounds, bootstrap: Bootstrap
) -> list[PartitionLedger]:
    """Return a ledger for each partition that was read, with gaps explained as far as possible."""
    ledgers = _partition_ledgers(results)
    with closing(connect(bootstrap)) as cluster:
        return settled(ledgers, cluster, described)
