"""Streams of one Spark, driven from outside by lines of JSON.

    PYTHON tests/system/lake/stream_program.py

Runs in an environment with any version of Spark: imports ottla and its extra `lake` alone. Reads
a command from each line of standard input, and answers with a line each: `{"rows": …}` of what the
target has, or `{"error": …}`.

    {"do": "start", "folder": …, "options": {…}}                a query, each 100 ms
    {"do": "start", "folder": …, "options": {…}, "now": true}   one with availableNow
    {"do": "rows", "folder": …}                                 topic, partition, offset, value
    {"do": "end"}                                               its end, or how it failed
    {"do": "goes_on"}                                           whether it runs, or how it failed
    {"do": "stop"}                                              stop it
"""

import json
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException

import ottla.lake
from ottla.lake.job.on_spark import cause_of
from ottla.lake.job.session import SparkSettings, session

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.authenticate.socketTimeout": "5m",  # Until a Python has started.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class Streams:
    """One query at a time."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._query: Any = None

    def start(self, folder: str, options: dict[str, str], now: bool = False) -> None:
        """Topics into Parquet, with a checkpoint in the same folder."""
        self._begin = partial(self._started, folder, options, now)
        self._query = self._begin()

    def _started(self, folder: str, options: dict[str, str], now: bool) -> Any:
        frame = self._spark.readStream.format("ottla").options(**options).load()
        writer = frame.writeStream.format("parquet").option("path", f"{folder}/rows")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        trigger = {"availableNow": True} if now else {"processingTime": "100 milliseconds"}
        return writer.trigger(**trigger).start()

    def rows(self, folder: str) -> list[list[Any]]:
        """What Spark's own file sink has committed."""
        if not (Path(folder) / "rows" / "_spark_metadata").exists():
            return []
        found = self._spark.read.parquet(f"{folder}/rows")
        found = found.selectExpr("topic", "partition", "offset", "string(value) AS value")
        return sorted(map(list, found.collect()))

    def end(self) -> None:
        while self.goes_on():
            with suppress(StreamingQueryException):
                self._query.awaitTermination()

    def goes_on(self) -> bool:
        """A Python that took longer to start than Spark 4.0 waits for it is started again."""
        failure = self._query.exception()
        if failure is not None and "failed to connect back" in str(failure):
            self._query = self._begin()
        elif failure is not None:
            raise failure
        return bool(self._query.isActive)

    def stop(self) -> None:
        self._query.stop()


def main() -> None:
    spark = session(SparkSettings("local[2,4]", conf=SETTINGS))
    ottla.lake.register(spark)
    streams = Streams(spark)
    for line in sys.stdin:
        words = json.loads(line)
        try:
            answer = {"rows": getattr(streams, words.pop("do"))(**words)}
        except Exception as error:  # noqa: BLE001  # Any failure is a result here.
            answer = {"error": cause_of(str(error))}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
