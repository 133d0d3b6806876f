"""Topic to tables on `local[2]`: our load and data source beside Spark's own Kafka connector.

5 M random 100-byte records in 4 partitions, 16 KiB batches, on Ottla (`lake_kib`: 1 M of 1 KiB);
the same columns written by every arm; arms take turns, the first rounds warm up and are thrown
away. Each counts from its call until the table is complete.
"""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import ottla.lake
from bench.figures import AT_LEAST, Figure, Scale, spread
from bench.sides import NO_FSYNC, create_topic
from ottla.lake.job import session as lake_session
from ottla.record.builder import build_batch
from rig.broker import ottla as ottla_process
from rig.frames import produce_request
from rig.jars import SPARK_CONNECTOR
from rig.java import java_home
from rig.nodes import Node
from rig.probe import connect, receive_frame

_PARTITIONS = 4
_BATCH_BYTES = 14_500
_TUNED = {"kafka.max.poll.records": "50000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
_COLUMNS = ["key", "value", "headers", "topic", "partition", "offset", "timestamp"]


def measure(scale: Scale) -> list[Figure]:
    return measure_records(scale, scale.pick(5_000_000, 200_000), 100)


def measure_records(scale: Scale, records: int, value_bytes: int) -> list[Figure]:
    """All arms over a topic of so many records with values of this size."""
    if not SPARK_CONNECTOR.ready():
        print("   without Spark's connector: run `make rig`", flush=True)
        return []
    folder = Path(tempfile.mkdtemp(prefix="bench-lake-"))
    session = _session()
    try:
        with ottla_process(settings=NO_FSYNC) as node:
            topic = create_topic(node, _PARTITIONS)
            records = _fill(node, topic, records, value_bytes)
            arms: dict[str, Callable[[Path], float]] = {
                "connector": lambda target: _connector(session, node, topic, target, {}),
                "tuned": lambda target: _connector(session, node, topic, target, _TUNED),
                "source": lambda target: _source(session, node, topic, target),
                "copy": lambda target: _copy(session, written, target),
                "load": lambda target: _load(session, node, topic, target),
                "delta": lambda target: _load(session, node, topic, target, format="delta"),
                "iceberg": lambda target: _load(session, node, topic, target, format="iceberg"),
            }
            written = folder / "written"
            _load(session, node, topic, written)
            seconds = _in_turn(arms, scale, folder)
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
    rates = {name: [records / taken for taken in times] for name, times in seconds.items()}
    return _figures(rates, f"{value_bytes} B")


def _figures(rates: dict[str, list[float]], of: str) -> list[Figure]:
    middle = {name: statistics.median(values) for name, values in rates.items()}

    def beside(name: str, arm: str, other: str, bound: float | None) -> Figure:
        note = f"{arm} {spread(rates[arm])}; {other} {spread(rates[other])} records/s"
        sides = {"ottla": rates[arm], other: rates[other], "unit": "records/s"}
        return Figure(name, middle[arm] / middle[other], "×", AT_LEAST, bound, note, sides)

    return [
        # A source of rows that costs nothing would be as fast as this: Spark writes them itself.
        beside(
            f"Spark's own copy of Parquet files / its connector, {of}", "copy", "connector", None
        ),
        beside(f"lake load / Spark's connector, {of}", "load", "connector", 5.0),
        beside(f"lake load / tuned connector, {of}", "load", "tuned", 3.5),
        beside(f"lake load into Delta / Parquet, {of}", "delta", "load", 0.9),
        beside(f"lake load into Iceberg / Parquet, {of}", "iceberg", "load", 0.9),
        beside(f"lake data source / Spark's connector, {of}", "source", "connector", 2.0),
        beside(f"lake data source / tuned connector, {of}", "source", "tuned", None),
    ]


def _in_turn(
    arms: dict[str, Callable[[Path], float]], scale: Scale, folder: Path
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for round_number in range(scale.warm_up_rounds + scale.rounds):
        # In another order each time: garbage of one side may be collected in the time of the next.
        for name in Random(round_number).sample(list(arms), len(arms)):
            act = arms[name]
            target = folder / f"{name}-{round_number}"
            taken = act(target)
            shutil.rmtree(target, ignore_errors=True)
            # Loads wait for the disk; Spark's writers do not, and leave theirs to the next side.
            os.sync()
            if round_number >= scale.warm_up_rounds:
                seconds[name].append(taken)
    return seconds


def _session() -> Any:
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415  # Only where there is a Java.

    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in lake_session.LOCAL_SETTINGS.items():
        builder = builder.config(name, value)
    # Spark's own copy of large values does not fit into its default of 1 GiB.
    builder = builder.config("spark.driver.memory", "2g")
    builder = builder.config("spark.jars", ",".join(map(str, SPARK_CONNECTOR.folder.glob("*.jar"))))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    ottla.lake.register(session)
    return session


def _fill(node: Node, topic: str, records: int, value_bytes: int) -> int:
    """Write random records, evenly over the partitions; return how many."""
    per_batch = _BATCH_BYTES // value_bytes
    rounds = -(-records // (per_batch * _PARTITIONS))
    with connect(node.port) as connection:
        for _ in range(rounds):
            for partition in range(_PARTITIONS):
                content = os.urandom(value_bytes * per_batch)
                values: list[bytes | None] = [
                    content[at : at + value_bytes] for at in range(0, len(content), value_bytes)
                ]
                now_ms = time.time_ns() // 1_000_000
                made = build_batch([now_ms] * per_batch, None, values)
                connection.sendall(produce_request(topic, partition, bytes(made), 1))
            for _ in range(_PARTITIONS):
                receive_frame(connection)
    return rounds * per_batch * _PARTITIONS


def _connector(
    session: Any, node: Node, topic: str, target: Path, options: dict[str, str]
) -> float:
    began = time.monotonic()
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", node.bootstrap)
    for name, value in options.items():
        reader = reader.option(name, value)
    frame = reader.option("subscribe", topic).option("includeHeaders", "true").load()
    frame.select(*_COLUMNS, "timestampType").write.parquet(str(target))
    return time.monotonic() - began


def _copy(session: Any, written: Path, target: Path) -> float:
    began = time.monotonic()
    session.read.parquet(str(written / "data")).write.parquet(str(target))
    return time.monotonic() - began


def _source(session: Any, node: Node, topic: str, target: Path) -> float:
    began = time.monotonic()
    reader = session.read.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    reader.option("subscribe", topic).load().write.parquet(str(target))
    return time.monotonic() - began


def _load(session: Any, node: Node, topic: str, target: Path, **settings: Any) -> float:
    """A whole load on the session that the other arms use."""
    began = time.monotonic()
    ottla.lake.load(topic, str(target), bootstrap=node.bootstrap, spark_session=session, **settings)
    return time.monotonic() - began
