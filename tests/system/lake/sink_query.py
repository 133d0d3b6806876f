"""A streaming query from files into a topic, and the kills that happen to it.

As a program it is a driver of its own, which a test may kill; in a session of the test it is a
function. The source is Spark's own: one file of JSON lines is one epoch.

    python -m tests.system.lake.sink_query BOOTSTRAP TOPIC FOLDER
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ottla.lake.edges.datasource import OttlaSource
from ottla.lake.edges.sink import OttlaStreamWriter
from ottla.lake.edges.sink_options import sink_options
from ottla.lake.job.session import LOCAL_SETTINGS

KEYS = 7
COMMIT_STEPS = (
    "epoch {epoch}",
    "id taken over",
    "mark read",
    "records sent",
    "mark added",
    "committed",
)


def write_input(folder: Path, epochs: int, rows: int) -> None:
    """Files of JSON lines: key k<n mod 7>, value <number>, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for epoch in range(epochs):
        lines = [
            f'{{"key": "k{number % KEYS}", "value": "{number}"}}\n'
            for number in range(epoch * rows, (epoch + 1) * rows)
        ]
        file = folder / f"{epoch:04}.json"
        file.write_text("".join(lines))
        os.utime(file, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


class Killer:
    """Kills a process when a step is reached in an epoch, once.

    `order` names a file "EPOCH STEP WHAT PID"; it is removed by the process that carries it out.
    """

    def __init__(self, order: str) -> None:
        self._order = Path(order)
        self._epoch = -1

    def __call__(self, step: str) -> None:
        if step.startswith("epoch "):
            self._epoch = int(step.removeprefix("epoch "))
        try:
            epoch, what, pid, wanted = self._order.read_text().split(" ", 3)
        except (FileNotFoundError, ValueError):
            return
        if wanted != step or (not step.startswith("task") and int(epoch) != self._epoch):
            return
        if step.startswith("task") and not self._is_epoch_of_task(int(epoch)):
            return
        try:
            self._order.unlink()
        except FileNotFoundError:
            return  # Another task was first.
        if what == "driver":
            os.kill(int(pid), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def _is_epoch_of_task(self, epoch: int) -> bool:
        return TaskContext.get().getLocalProperty("streaming.sql.batchId") == str(epoch)


class KilledSource(OttlaSource):
    """The sink whose steps a `Killer` sees."""

    @classmethod
    def name(cls) -> str:
        return "ottla-killed"

    def streamWriter(self, schema: StructType, overwrite: bool) -> OttlaStreamWriter:  # noqa: N802
        options = dict(self.options)
        order = options.pop("order")
        return OttlaStreamWriter(sink_options(options), schema, Killer(order))


def run_query(
    spark: Any,
    bootstrap: str,
    topic: str,
    folder: Path,
    on_start: Callable[[Any], None] = id,
    **options: str,
) -> None:
    """Write all files of `folder`/in to the topic, an epoch for each file; return at their end."""
    spark.dataSource.register(KilledSource)
    frame = (
        spark.readStream.schema("key STRING, value STRING")
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "in"))
        # Two tasks; the rows of one key stay in order, as they come from one file.
        .repartition(2, "key")
    )
    query = (
        frame.writeStream.format("ottla-killed")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("order", str(folder / "order"))
        .options(**options)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    on_start(query)
    query.awaitTermination()


def drive(bootstrap: str, topic: str, folder: Path) -> int:
    """Run the query in a driver of its own; its exit code."""
    command = driver_command(bootstrap, topic, folder)
    with (folder / "driver.log").open("ab") as log:
        return subprocess.run(command, check=False, stdout=log, stderr=log).returncode


def driver_command(bootstrap: str, topic: str, folder: Path) -> list[str]:
    """What starts a driver."""
    root = Path(__file__).parents[3]
    program = (
        f"import sys; sys.path.insert(0, {str(root)!r}); import tests.system.lake.sink_query as q; "
    )
    return [sys.executable, "-c", f"{program}q.main()", bootstrap, topic, str(folder)]


def local_session() -> Any:
    """A session of this process."""
    builder = SparkSession.builder.master("local[2,4]").appName("sink")
    for name, value in LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config(
        "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def main() -> None:
    """The driver process."""
    bootstrap, topic, folder = sys.argv[1:]
    spark = local_session()
    # The driver is the JVM: Python only holds its hand.
    jvm = spark.sparkContext._gateway.proc.pid
    (Path(folder) / "jvm").write_text(str(jvm))
    order = Path(folder) / "order"
    if order.exists():
        epoch, what, _, step = order.read_text().split(" ", 3)
        order.write_text(f"{epoch} {what} {jvm} {step}")
    run_query(spark, bootstrap, topic, Path(folder))
    spark.stop()


if __name__ == "__main__":
    main()
