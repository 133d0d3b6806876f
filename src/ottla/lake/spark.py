"""Runs tasks on Spark: a map-only job, one task for each range, results back to the driver.

Works on `local[*]`, on a cluster by spark-submit, and under Spark Connect (no RDDs).
"""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import task as tasks
from ottla.lake.access import config_of_process, configured
from ottla.lake.splitting import joined

Job = TypeVar("Job")

# As many tasks start workers on every core of a small machine, and cost a large cluster nothing.
_WARM_WORKERS = 4

# An error in a traceback of ours, without its class and code; any other one, with its class.
_OUR_ERROR = re.compile(r"^\s*ottla\.[\w.]+: [A-Z_]+: (.*)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^\s*((?!org\.|java\.)[\w.]*(?:Error|Exception): .*)$", re.MULTILINE)


def run_tasks(spark: Any, planned: Sequence[tasks.Task]) -> list[tasks.TaskResult]:
    """Run `planned` as tasks of Spark, small ones together; return their results, in any order.

    A failed task is tried again by Spark from its start; the load fails only when Spark gives up.
    """
    sizes = [one.log_bytes for one in planned]
    texts = run_jobs(spark, planned, _run_task, sizes, "nothing was committed, since")
    return list(map(tasks.result_from_text, texts))


def warm_up(spark: Any) -> None:
    """Have Spark start workers that have imported what tasks need.

    What fails here fails with the first tasks, too, and is reported there.
    """
    with suppress(OttlaError):
        run_jobs(spark, range(_WARM_WORKERS), _run_nothing, [1 << 62] * _WARM_WORKERS, "")


def run_jobs(
    spark: Any,
    jobs: Sequence[Job],
    run: Callable[[Job], str],
    sizes: Sequence[int],
    consequence: str,
) -> list[str]:
    """Run each job in a task of Spark, small ones together; return their results, in any order.

    `jobs` and `run` are pickled. `sizes` are in bytes. A failed task is tried again from its
    start; where Spark gives up an OttlaError says why, behind `consequence`.
    """
    groups = [[jobs[place] for place in group] for group in joined(sizes)]
    if not groups:
        return []
    work = _work(groups, run, config_of_process())
    frame = spark.range(0, len(groups), 1, len(groups)).mapInArrow(work, "result string")
    try:
        rows = frame.collect()
    except Exception as error:  # Any kind of error: Spark gave up on a task.
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{consequence} a task failed: {cause_of(str(error))}"
        ) from error
    return [row.result for row in rows]


def _run_task(task: tasks.Task) -> str:
    return tasks.result_to_text(tasks.run(task, uuid.uuid4().hex[:12]))


def _run_nothing(_number: int) -> str:
    return ""


def cause_of(text: str) -> str:
    """What a task said when it failed, out of all that Spark wraps around it."""
    # The last one: where one error led to another, Python prints the first one first.
    ours = _OUR_ERROR.findall(text)
    if ours:
        return str(ours[-1]).strip()
    told = _PYTHON_ERROR.findall(text)
    return str(told[-1]).strip() if told else text.strip().splitlines()[0]


def _work(
    groups: list[list[Job]], run: Callable[[Job], str], config: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for job in groups[number]:
                    with configured(config):
                        result = run(job)
                    yield pa.RecordBatch.from_pydict({"result": [result]})

    return work
