"""Runs tasks on Spark: a map-only job, one task for each range, results back to the driver.

Works on `local[*]`, on a cluster by spark-submit, and under Spark Connect (no RDDs).
"""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import task as tasks


def session() -> Any:
    """Return the running Spark session, or start a quiet one on all cores of this machine.

    Raises OttlaError where Spark or Java is missing, with what to install.
    """
    # Workers must be this Python, with these packages, and not whatever is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        # Spark is an extra, and slow to import: only a load pays for it.
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "loads run on Spark, which is not installed: pip install 'ottla[lake]'",
        ) from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName("ottla lake")
    if "SPARK_REMOTE" not in os.environ and "spark.master" not in os.environ.get(
        "PYSPARK_SUBMIT_ARGS", ""
    ):
        for name, value in LOCAL_SETTINGS.items():
            builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkException as error:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Spark did not start; it needs Java 17 or newer (set JAVA_HOME, or install "
            f"openjdk-17-jre-headless): {error}",
        ) from error


LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def run_tasks(spark: Any, planned: Sequence[tasks.Task]) -> list[tasks.TaskResult]:
    """Run one Spark task for each of `planned`; return their results, in the order of completion.

    A failed task is tried again by Spark from its start; the load fails only when Spark gives up.
    """
    frame = spark.range(0, len(planned), 1, len(planned)).mapInArrow(
        _work(list(planned)), "result string"
    )
    try:
        rows = frame.collect()
    except Exception as error:  # Any kind of error: Spark gave up on a task.
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Spark gave up on a task, and nothing was committed; {_cause(str(error))}",
        ) from error
    return [tasks.result_from_text(row.result) for row in rows]


def _cause(text: str) -> str:
    """The line of a task's failure that says why, out of all that Spark wraps around it."""
    told = [line.strip() for line in text.splitlines() if "ottla." in line and ": " in line]
    errors = [line for line in told if not line.startswith("File ")]
    return errors[-1] if errors else text.strip().splitlines()[0]


def _work(
    planned: list[tasks.Task],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                result = tasks.run(planned[number], uuid.uuid4().hex[:12])
                yield pa.RecordBatch.from_pydict({"result": [tasks.result_to_text(result)]})

    return work
