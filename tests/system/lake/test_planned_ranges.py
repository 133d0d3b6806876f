"""Which ranges of which partitions a query reads, and in how many tasks."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.client import sync
from ottla.lake.edges.datasource import OttlaSource

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def put(node: Node, topic: str, partition: int, times_ms: Sequence[int]) -> None:
    """A record for each time, in batches of one, in order."""
    settings = {"log_level": 0, "batch.size": 1, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": node.bootstrap, **settings})
    for time_ms in times_ms:
        producer.produce(topic, b"%d" % time_ms, b"k", partition=partition, timestamp=time_ms)
    assert producer.flush(60) == 0


def planned(node: Node, **options: str) -> set[Any]:
    """(topic, partition, start, end) of each range."""
    reader = OttlaSource({"kafka.bootstrap.servers": node.bootstrap, **options}).reader(None)
    return {
        (one.wanted.topic, one.wanted.partition, one.wanted.start, one.wanted.end)
        for partition in reader.partitions()
        for one in partition.value
    }


def test_records_of_times_before_1970_are_read(either: Node, make_topic: MakeTopic) -> None:
    """No request can ask for such a time, which excludes none of them."""
    topic = make_topic(either, partitions=1)
    with sync.Producer(either.bootstrap) as producer:
        for time_ms in (-1, -1, 5):
            producer.send(topic, b"v", partition=0, timestamp_ms=time_ms)
    for moment, first in (
        (datetime(1969, 1, 1, tzinfo=UTC), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, tzinfo=UTC), 2),
    ):
        found = planned(either, subscribe=topic, startingTimestamp=moment.isoformat())
        assert found == {(topic, 0, first, 3)}


def test_assigned_partitions_alone_are_read(node: Node, spark: Any, make_topic: MakeTopic) -> None:
    """The other one has a record that cannot be read."""
    topic = make_topic(node, partitions=2, message_timestamp_after_max_ms=str(2**63 - 1))
    put(node, topic, 0, range(1000, 1020))
    put(node, topic, 1, [2**62])
    ottla.lake.register(spark)
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    with pytest.raises(Exception, match="timestamp"):
        reader.option("subscribe", topic).load().count()
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
    frame = reader.option("assign", json.dumps({topic: [0]})).load()
    assert frame.count() == 20
    assert frame.where("partition < 1 and offset >= 5 and offset % 2 = 0").count() == 7
    assert frame.where("timestamp >= timestamp_millis(1015)").count() == 5


def test_several_topics_by_list_and_by_pattern(either: Node, make_topic: MakeTopic) -> None:
    """Of the cluster's own topics none is meant by a pattern."""
    first, second = make_topic(either, partitions=1), make_topic(either, partitions=1)
    put(either, first, 0, range(5))
    put(either, second, 0, range(8))
    both = {(first, 0, 0, 5), (second, 0, 0, 8)}

    assert planned(either, subscribe=f"{first},{second}") == both
    assert planned(either, subscribePattern=f"{first}|{second}") == both
    third = json.dumps({second: {"0": 3}})
    part = planned(either, subscribe=f"{first},{second}", startingOffsets=third)
    assert part == {(first, 0, 0, 5), (second, 0, 3, 8)}
    everything = planned(either, subscribePattern=".*")
    assert everything >= both
    assert not [name for name, *_ in everything if name.startswith("__")]


def test_small_ranges_share_a_task_and_large_ones_are_divided(
    node: Node, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(node, partitions=4)
    produce(node, topic, 0, 4000)

    def tasks(**options: str) -> list[int]:
        source = OttlaSource(
            {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, **options}
        )
        return [len(one.value) for one in source.reader(None).partitions()]

    assert tasks() == [4]
    assert sum(tasks(bytesPerTask="10000")) > 8
    assert tasks(maxRecordsPerPartition="100000") == [1, 1, 1, 1]
    assert len(tasks(minPartitions="7")) >= 7
