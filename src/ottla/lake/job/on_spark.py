"""Runs tasks on Spark: a map-only job whose results come back to the driver.

It uses no RDDs, so it works on `local[*]`, on a cluster by spark-submit, and with Spark Connect.
"""

import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.task import ALONE, OnDone, R, Task
from ottla.lake.model.plan import joined
from ottla.lake.model.schema import byte_strings

# Enough tasks to start workers on every core of a small machine.
_WARM_WORKERS = 4
# The interval at which Spark is polled for completed tasks.
_POLL_S = 0.5
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

# Patterns for a traceback: an error of ottla without its class and code, and any other error.
_OUR_ERROR = re.compile(r"^\s*ottla\.[\w.]+: [A-Z_]+: (.*)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^\s*((?!org\.|java\.)[\w.]*(?:Error|Exception): .*)$", re.MULTILINE)


def run_on_spark(
    spark: Any,
    tasks: Sequence[Task[R]],
    on_done: OnDone | None = None,
    consequence: str = "nothing was committed, since",
) -> list[R]:
    """Run tasks on the session `spark`, and return their results in the order of the tasks.

    Several small tasks run as one Spark task. Spark retries a failed task; if it gives up, an
    OttlaError is raised that says `consequence` and the cause. `on_done` is called with the number
    of completed tasks, as Spark reports it.
    """
    groups = joined([task.size_bytes for task in tasks])
    if not groups:
        return []
    work = _work([[(place, tasks[place]) for place in one] for one in groups])
    frame = spark.range(0, len(groups), 1, len(groups)).mapInArrow(work, "result binary")
    ends = [0, *accumulate(map(len, groups))]
    try:
        with _watched(spark, ends, on_done) if on_done else nullcontext():
            rows = frame.collect()
    except Exception as error:  # Spark raises errors of any class when it gives up on a task.
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{consequence} a task failed: {cause_of(str(error))}"
        ) from error
    # Unpickling is safe, because tasks of this job wrote the results.
    found: dict[int, R] = dict(pickle.loads(row.result) for row in rows)
    return [found[place] for place in range(len(tasks))]


def warm_up(spark: Any) -> None:
    """Have Spark start workers that import the modules of tasks.

    An error is ignored here, as the first tasks would report it.
    """
    with suppress(OttlaError):
        run_on_spark(spark, [_Nothing()] * _WARM_WORKERS)


@dataclass(frozen=True, slots=True)
class _Nothing:
    size_bytes: int = ALONE
    offsets: int = 0

    def run(self) -> None:
        """Do nothing. To unpickle this task, a worker imports the module, which is the purpose."""


def cause_of(text: str) -> str:
    """Return the error of a task, without the text that Spark wraps around it."""
    # Take the last error: Python prints the original error before the errors that it caused.
    ours = _OUR_ERROR.findall(text)
    if ours:
        return str(ours[-1]).strip()
    others = _PYTHON_ERROR.findall(text)
    return str(others[-1]).strip() if others else text.strip().splitlines()[0]


def _work(
    groups: list[list[tuple[int, Task[R]]]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for place, task in groups[number]:
                    result = task.run()
                    found = byte_strings([pickle.dumps((place, result))])
                    yield pa.RecordBatch.from_arrays([found], ["result"])

    return work


@contextmanager
def _watched(spark: Any, ends: Sequence[int], on_done: OnDone) -> Iterator[None]:
    """Report how many tasks are complete while the context's Spark job runs.

    Spark reports the number of completed Spark tasks, but not which. As it starts them in order,
    the first ones are assumed. `ends` has the number of tasks up to the end of each Spark task. The
    caller reports the last task, once the results have arrived.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # An extra, and slow to import.

    try:
        context = spark.sparkContext
    except PySparkException:
        context = None  # Spark Connect has no context, but calls a progress handler.

    def report(done: int) -> None:
        on_done(ends[min(done, len(ends) - 2)])

    with _of_connect(spark, report) if context is None else _of_context(context, report):
        yield


@contextmanager
def _of_context(context: Any, report: OnDone) -> Iterator[None]:
    group, over = f"ottla-{uuid.uuid4().hex}", threading.Event()
    tracker = context.statusTracker()
    before = {name: context.getLocalProperty(name) for name in _GROUP_PROPERTIES}
    context.setJobGroup(group, "ottla lake load")

    def watch() -> None:
        while not over.wait(_POLL_S):
            report(_done(tracker, group))

    watcher = threading.Thread(target=watch, name="ottla-lake-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        for name, value in before.items():
            context.setLocalProperty(name, value)


def _done(tracker: Any, group: str) -> int:
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        known = tracker.getJobInfo(job)
        stages = [tracker.getStageInfo(stage) for stage in known.stageIds] if known else []
        done += sum(stage.numCompletedTasks for stage in stages if stage)
    return done


@contextmanager
def _of_connect(spark: Any, report: OnDone) -> Iterator[None]:
    def handler(stages: Any, **_: Any) -> None:
        report(sum(stage.num_completed_tasks for stage in stages or ()))

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
