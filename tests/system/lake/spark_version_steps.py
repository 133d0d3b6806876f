"""What the lake does with Spark, step by step, for `by_hand_spark_versions`.

Runs in an environment with one version of Spark: imports ottla and its extra `lake` alone. Prints
a line of JSON for each step: its name, and what came out or how it failed.
"""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark

import ottla.lake
from ottla.lake.job.on_spark import cause_of
from ottla.lake.job.session import SparkSettings, session

ROWS, PARTITIONS = 1000, 2


class Steps:
    """A topic of `ROWS` records, a folder for tables, and a session."""

    def __init__(self, bootstrap: str, topic: str, folder: Path, spark: Any) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.folder = folder
        self.spark = spark
        ottla.lake.register(spark)

    def load(self) -> None:
        done = ottla.lake.load(self.topic, self.table("load"), bootstrap=self.bootstrap)
        require(done.rows, ROWS)

    def verify(self) -> None:
        """By tasks of Spark."""
        proof = ottla.lake.verify(
            self.table("load"), bootstrap=self.bootstrap, spark_session=self.spark
        )
        require((proof.problems, proof.compared), ([], ROWS))

    def read(self) -> None:
        require(self.frame().count(), ROWS)

    def push_down(self) -> None:
        """A condition on the partition decides what is planned."""
        frame = self.frame().where("partition = 1")
        require(0 < frame.count() < ROWS, True)
        require(frame.rdd.getNumPartitions(), 1)

    def stream(self) -> None:
        require(self.streamed("stream", {}), ROWS)

    def limits(self) -> None:
        require(self.streamed("limits", {"maxOffsetsPerTrigger": "300"}), ROWS)

    def follow(self) -> None:
        target = self.table("follow")
        ottla.lake.follow(self.topic, target, bootstrap=self.bootstrap, once=True)
        require(ottla.lake.verify(target, bootstrap=self.bootstrap).rows, ROWS)

    def write(self) -> None:
        """The sink, a batch."""
        writer = self.frame().select("key", "value").write.format("ottla").mode("append")
        writer.option("kafka.bootstrap.servers", self.bootstrap).option(
            "topic", f"{self.topic}-batch"
        ).save()
        require(self.frame(f"{self.topic}-batch").count(), ROWS)

    def write_stream(self) -> None:
        """The sink, a stream."""
        name = f"{self.topic}-stream"
        writer = self.reading({}).select("key", "value").writeStream.format("ottla")
        writer = writer.option("kafka.bootstrap.servers", self.bootstrap).option("topic", name)
        writer = writer.option("checkpointLocation", self.table("sink-checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        require(self.frame(name).count(), ROWS)

    def table(self, name: str) -> str:
        return str(self.folder / name)

    def frame(self, topic: str = "") -> Any:
        reader = self.spark.read.format("ottla").option("kafka.bootstrap.servers", self.bootstrap)
        return reader.option("subscribe", topic or self.topic).load()

    def reading(self, options: dict[str, str]) -> Any:
        reader = self.spark.readStream.format("ottla").option(
            "kafka.bootstrap.servers", self.bootstrap
        )
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        return reader.options(**options).load()

    def streamed(self, name: str, options: dict[str, str]) -> int:
        writer = self.reading(options).writeStream.format("parquet")
        writer = writer.option("checkpointLocation", self.table(f"{name}-checkpoint"))
        writer = writer.option("path", self.table(name)).trigger(availableNow=True)
        writer.start().awaitTermination()
        return int(self.spark.read.parquet(self.table(name)).count())


def require(found: object, expected: object) -> None:
    assert found == expected, f"{found!r} instead of {expected!r}"


def tried(step: Callable[[], None]) -> str:
    """What came out of a step, in a line."""
    try:
        step()
    except Exception as error:  # noqa: BLE001  # Any failure is a result here.
        return cause_of(str(error))
    return "ok"


def main(bootstrap: str, topic: str, folder: str) -> None:
    warned: list[str] = []
    warnings.showwarning = lambda message, *_words, **_more: warned.append(str(message))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    spark = session(SparkSettings("local[2,4]", conf=settings))
    steps = Steps(bootstrap, topic, Path(folder), spark)
    print(json.dumps(["pyspark", pyspark.__version__]), flush=True)
    print(json.dumps(["pandas", pd.__version__]), flush=True)
    for step in (
        *(steps.load, steps.verify, steps.read, steps.push_down, steps.stream, steps.limits),
        *(steps.follow, steps.write, steps.write_stream),
    ):
        print(json.dumps([step.__name__, tried(step)]), flush=True)
    print(json.dumps(["warnings", "; ".join(sorted(set(warned))) or "none"]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
