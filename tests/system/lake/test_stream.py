"""Topics as a stream of Spark: every record once, in micro-batches, over restarts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from rig.nodes import Node

import ottla.lake

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def drained(spark: Any, node: Node, target: Path, **options: str) -> list[int]:
    """Stream what is there into Parquet; how many rows each micro-batch had."""
    ottla.lake.register(spark)
    reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    reader = reader.option("startingOffsets", "earliest")
    for name, value in options.items():
        reader = reader.option(name, value)
    query = (
        reader.load()
        .writeStream.format("parquet")
        .option("checkpointLocation", str(target / "checkpoint"))
        .option("path", str(target / "rows"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress]


def rows(spark: Any, target: Path) -> list[Any]:
    found = spark.read.parquet(str(target / "rows"))
    return sorted(tuple(row) for row in found.select("topic", "partition", "offset").collect())


def test_every_record_once_over_limits_restarts_and_new_partitions(
    either: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """From Ottla and from Kafka; topics and partitions that come later are found."""
    topic = make_topic(either, partitions=2)
    produce(either, topic, 0, 1000)
    options = {"subscribePattern": f"{topic}(-later)?", "maxOffsetsPerTrigger": "300"}

    batches = drained(spark, either, tmp_path, **options)
    assert sum(batches) == 1000
    assert max(batches) <= 300
    assert sum(drained(spark, either, tmp_path, **options)) == 0
    admin = AdminClient({"bootstrap.servers": either.bootstrap, "log_level": 0})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(60)
    later = f"{topic}-later"
    admin.create_topics([NewTopic(later, 1, 1)])[later].result(60)
    produce(either, later, 0, 50)
    producer = Producer({"bootstrap.servers": either.bootstrap, "log_level": 0})
    for number in range(30):
        producer.produce(topic, b"v%d" % number, partition=2)
    assert producer.flush(60) == 0
    assert sum(drained(spark, either, tmp_path, **options)) == 80
    found = rows(spark, tmp_path)
    assert len(found) == len(set(found)) == 1080
    assert [row for row in found if row[0] == later] == [(later, 0, n) for n in range(50)]


def test_a_topic_made_anew_stops_the_stream(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 20)
    assert sum(drained(spark, node, tmp_path, subscribe=topic)) == 20
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result(60)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    produce(node, topic, 0, 50)

    with pytest.raises(Exception, match="created anew since the stream read it"):
        drained(spark, node, tmp_path, subscribe=topic)
    assert len(rows(spark, tmp_path)) == 20


def test_deleted_records_stop_the_stream_or_are_passed_over(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    from confluent_kafka import TopicPartition

    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 20)
    drained(spark, node, tmp_path, subscribe=topic)
    produce(node, topic, 20, 60)
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for future in admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result(60)

    with pytest.raises(Exception, match="10 of the offsets 20 to 60 were deleted"):
        drained(spark, node, tmp_path, subscribe=topic)
    drained(spark, node, tmp_path, subscribe=topic, failOnDataLoss="false")
    assert [row[2] for row in rows(spark, tmp_path)] == [*range(20), *range(30, 60)]


def test_a_stream_has_no_end(node: Node, spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="a stream has no end"):
        drained(spark, node, tmp_path, subscribe="t", endingTimestamp="5")
