"""The data source reads exactly what Spark's own connector reads, and refuses wrong words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rig.jars import SPARK_CONNECTOR
from rig.nodes import Node

import ottla.lake
from ottla.lake import run_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def source(spark: Any, node: Node, topic: str, **options: str) -> Any:
    ottla.lake.register(spark)
    reader = spark.read.format("ottla").option("bootstrap", node.bootstrap).option("topic", topic)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def test_rows_equal_those_of_sparks_own_connector(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce
) -> None:
    """Key, value, partition, offset, timestamp, type and headers: the same multiset of rows."""
    if not SPARK_CONNECTOR.ready():
        pytest.skip("Spark's connector is not here: run `make rig`")
    topic = make_topic(node, partitions=3)
    produce(node, topic, 0, 400)
    produce(node, topic, 400, 700, **{"compression.type": "snappy"})
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "headers"]
    theirs = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", node.bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .withColumnRenamed("timestampType", "timestamp_type")
    )
    ours = source(spark, node, topic)

    expected = sorted(theirs.select(*columns, "timestamp_type").collect())
    assert len(expected) == 700
    assert sorted(ours.select(*columns, "timestamp_type").collect()) == expected


def test_offsets_choose_a_part(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 100)
    frame = source(spark, node, topic, start="0:10", end="0:35", offsetsPerTask="10")

    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.offset for row in frame.collect()) == list(range(10, 35))


def test_reading_goes_on_where_the_last_load_ended(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 60)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    produce(node, topic, 60, 75)
    frame = source(spark, node, topic, start="last-load", table=str(tmp_path))

    assert sorted(bytes(row.value) for row in frame.collect()) == [
        b"v%d" % n for n in range(60, 75)
    ]


def test_timestamps_choose_a_part(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(node, partitions=1, message_timestamp_type="LogAppendTime")
    produce(node, topic, 0, 20)
    first = source(spark, node, topic).agg({"timestamp": "max"}).collect()[0][0]
    after_ms = int(first.timestamp() * 1000) + 1
    while (source(spark, node, topic).count()) < 30:
        produce(node, topic, 20, 30)
    frame = source(spark, node, topic, start=f"@{after_ms}")

    assert {row.timestamp_type for row in frame.collect()} == {1}
    assert sorted(row.offset for row in frame.collect()) == list(range(20, 30))


def test_columns_can_be_left_out(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 5)
    frame = source(spark, node, topic, columns="offset,value")

    assert frame.columns == ["offset", "value"]
    assert frame.count() == 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"begin": "earliest"}, "there is no option 'begin'"),
        ({"columns": "key,val"}, "there is no column 'val'"),
        ({"start": "yesterday"}, "'yesterday' is not a boundary"),
        ({"start": "0:10000"}, "not in its log"),
        ({"start": "last-load"}, "last-load of which table"),
        ({"offsetsPerTask": "0"}, "not a number of offsets"),
    ],
)
def test_wrong_words_are_refused_with_the_right_ones(
    node: Node,
    spark: Any,
    make_topic: MakeTopic,
    produce: Produce,
    options: dict[str, str],
    told: str,
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 5)

    with pytest.raises(Exception, match=told):
        source(spark, node, topic, **options).count()
