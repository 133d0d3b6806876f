"""The data source reads what its options say, and refuses wrong words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rig.nodes import Node

import ottla.lake
from ottla.lake import run_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def source(spark: Any, node: Node, topic: str, **options: str) -> Any:
    ottla.lake.register(spark)
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    reader = reader.option("subscribe", topic)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def at(topic: str, offset: int) -> str:
    """That offset of partition 0."""
    return json.dumps({topic: {"0": offset}})


def test_offsets_choose_a_part(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 100)
    places = {"startingOffsets": at(topic, 10), "endingOffsets": at(topic, 35)}
    frame = source(spark, node, topic, **places, maxRecordsPerPartition="10")

    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.offset for row in frame.collect()) == list(range(10, 35))


def test_reading_goes_on_where_the_last_load_ended(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 60)
    ottla.lake.load(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    produce(node, topic, 60, 75)
    frame = source(spark, node, topic, startingOffsets="last-load", table=str(tmp_path))

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
    frame = source(spark, node, topic, startingTimestamp=f"{after_ms}")

    assert {row.timestampType for row in frame.collect()} == {1}
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
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"bootstrap": "h:1"}, "did you mean kafka.bootstrap.servers"),
        ({"columns": "key,val"}, "there is no column 'val'"),
        ({"startingOffsets": "yesterday"}, "is 'yesterday', not earliest, latest, last-load or"),
        ({"startingTimestamp": "soon"}, "is 'soon', not milliseconds since 1970"),
        ({"startingOffsets": "last-load"}, "last-load of which table"),
        ({"maxRecordsPerPartition": "0"}, "not a whole number above 0"),
        ({"kafka.isolation.level": "read_uncommitted"}, "leave out isolation.level"),
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


def test_a_topic_is_a_view_in_sql(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce
) -> None:
    """A table of a catalog would be read without its options, and is refused with that reason."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 50)
    source = f"USING ottla OPTIONS (subscribe '{topic}', "
    source += f"`kafka.bootstrap.servers` '{node.bootstrap}')"
    with pytest.raises(Exception, match="write CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE topic_as_table {source}")
    spark.sql(f"CREATE TEMPORARY VIEW topic_as_view {source}")
    assert spark.table("topic_as_view").columns[:3] == ["key", "value", "topic"]
    found = spark.sql("SELECT count(*), count(DISTINCT value) FROM topic_as_view WHERE offset >= 0")
    assert tuple(found.collect()[0]) == (50, 50)
