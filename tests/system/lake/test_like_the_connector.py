"""A program with `format("kafka")` does the same with `format("ottla")`, and nothing else changed.

Spark's own connector runs one, the data source the other; rows, columns and types are compared.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from rig.jars import SPARK_CONNECTOR
from rig.nodes import Node

MakeTopic = Callable[..., str]
FORMATS = ("kafka", "ottla")
_SERVERS = "kafka.bootstrap.servers"

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def with_the_connector() -> None:
    if not SPARK_CONNECTOR.ready():
        pytest.skip("Spark's connector is not here: run `make rig`")


@pytest.fixture
def topic(either: Node, make_topic: MakeTopic) -> str:
    """Three partitions of 40 records each, a second apart; of partition 2 only the first ten."""
    name = make_topic(either, partitions=3, retention_ms="-1")
    producer = Producer({"bootstrap.servers": either.bootstrap, "log_level": 0})
    for number in range(120):
        partition = number % 3
        if partition == 2 and number >= 30:
            continue
        producer.produce(
            name,
            None if number % 7 == 0 else b"v%d" % number,
            None if number % 5 == 0 else b"k%d" % number,
            partition=partition,
            timestamp=1_700_000_000_000 + 1000 * number,
            headers=[("a", b"1"), ("b", None)] if number % 2 else None,
        )
    assert producer.flush(120) == 0
    return name


def same(made: Callable[[str], Any]) -> Any:
    """What both formats make: equal."""
    theirs, ours = (made(form) for form in FORMATS)
    assert ours == theirs
    return ours


def rows(frame: Any) -> list[str]:
    return sorted(repr(row) for row in frame.collect())


def test_batches(spark: Any, either: Node, topic: str) -> None:
    """Columns with their types, and rows, by each way to say what is read."""

    def read(form: str, **options: str) -> Any:
        return spark.read.format(form).option(_SERVERS, either.bootstrap).options(**options).load()

    def at(numbers: dict[str, int]) -> str:
        return json.dumps({topic: numbers})

    times = {"0": 1_700_000_030_000, "1": 1_700_000_060_000, "2": 1_700_000_000_000}
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    chosen: list[tuple[int, dict[str, str]]] = [
        (90, {"subscribe": topic, "includeHeaders": "true"}),
        (90, {"subscribePattern": f"{topic}$|none", "kafka.max.poll.records": "7"}),
        (50, {"assign": json.dumps({topic: [0, 2]}), "groupIdPrefix": "mine"}),
        (
            3 + 40 + 8,
            {
                "subscribe": topic,
                "startingOffsets": at({"0": 37, "1": -2, "2": 2}),
                "endingOffsets": at({"0": 40, "1": -1, "2": 10}),
            },
        ),
        (
            30 + 20 + 10,
            {"subscribe": topic, "startingOffsetsByTimestamp": at(times), "failOnDataLoss": "true"},
        ),
        (20 + 20, {"subscribe": topic, "startingTimestamp": "1700000060000", **latest}),
        (20 + 20 + 10, {"subscribe": topic, "endingTimestamp": "1700000060000"}),
        (90, {"subscribe": topic, "minPartitions": "9", "maxRecordsPerPartition": "12"}),
    ]
    for count, options in chosen:
        assert len(same(lambda form: rows(read(form, **options)))) == count  # noqa: B023
        same(lambda form: read(form, **options).schema.simpleString())  # noqa: B023
    assert read("ottla", subscribe=topic, minPartitions="9").rdd.getNumPartitions() >= 9
    strict = {"subscribe": topic, "startingTimestamp": "1700000060000"}
    for form in FORMATS:
        with pytest.raises(Exception, match=r"(?i)no .*(offset|record)"):
            read(form, **strict).count()


def test_streams(spark: Any, either: Node, topic: str, tmp_path: Path) -> None:
    """From their start to the end in limited micro-batches, and by default from the end on."""

    def stream(form: str, name: str, **options: str) -> tuple[list[str], list[int]]:
        reader = spark.readStream.format(form).option(_SERVERS, either.bootstrap)
        frame = reader.option("subscribe", topic).options(**options).load()
        target = str(tmp_path / f"{form}-{name}")
        writer = frame.writeStream.format("parquet").option("path", target)
        writer = writer.option("checkpointLocation", f"{target}-checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        counts = [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]]
        return rows(spark.read.schema(frame.schema).parquet(target)), counts

    limited = {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "50",
        "includeHeaders": "true",
    }
    found, counts = zip(*(stream(form, "all", **limited) for form in FORMATS), strict=True)
    assert found[0] == found[1]
    assert len(found[0]) == 90
    assert max(counts[1]) <= 50
    assert same(lambda form: stream(form, "new")) == ([], [])
    producer = Producer({"bootstrap.servers": either.bootstrap, "log_level": 0})
    producer.produce(topic, b"new", timestamp=1_700_000_000_000, partition=1)
    assert producer.flush(120) == 0
    again, _ = zip(*(stream(form, "new") for form in FORMATS), strict=True)
    assert again[0] == again[1]
    assert len(again[0]) == 1


def test_sinks(spark: Any, either: Node, topic: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Topics copied as they are read, by a batch and by a stream: other columns are left out."""

    def written(form: str) -> list[str]:
        target = make_topic(either, partitions=3)
        settings = {_SERVERS: either.bootstrap, "topic": target, "kafka.acks": "all"}
        source = {_SERVERS: either.bootstrap, "subscribe": topic, "includeHeaders": "true"}
        frame = spark.read.format(form).options(**source).load()
        frame.drop("timestamp").write.format(form).options(**settings).mode("append").save()
        stream = spark.readStream.format(form).options(**source)
        frame = stream.option("startingOffsets", "earliest").load().drop("timestamp")
        writer = frame.writeStream.format(form).options(**settings)
        writer = writer.option("checkpointLocation", str(tmp_path / form))
        writer.trigger(availableNow=True).start().awaitTermination()
        # Spark's own connector reads both.
        found = spark.read.format("kafka").options(**source | {"subscribe": target}).load()
        return rows(found.select("key", "value", "partition", "headers"))

    assert len(same(written)) == 180
