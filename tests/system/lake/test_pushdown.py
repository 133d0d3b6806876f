"""What a query excludes by partition, offset, timestamp or topic is not read from the brokers."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql.datasource import EqualTo, Filter, GreaterThanOrEqual, LessThan, StringContains
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


def planned(node: Node, filters: Sequence[Filter], **options: str) -> tuple[set[Any], int]:
    """(topic, partition, start, end) of each range, and how many filters are left to Spark."""
    reader = OttlaSource({"kafka.bootstrap.servers": node.bootstrap, **options}).reader(None)
    left = list(reader.pushFilters(filters))
    found = {
        (one.wanted.topic, one.wanted.partition, one.wanted.start, one.wanted.end)
        for partition in reader.partitions()
        for one in partition.value
    }
    return found, len(left)


def test_ranges_are_narrowed(either: Node, make_topic: MakeTopic) -> None:
    """Exactly by partition and offset; from the first record that is late enough by time."""
    topic = make_topic(either, partitions=3)
    for partition in range(3):
        put(either, topic, partition, range(1000, 1010))

    assert planned(either, [], subscribe=topic)[0] == {(topic, p, 0, 10) for p in range(3)}
    assert planned(either, [EqualTo(("partition",), 99)], subscribe=topic) == (set(), 0)
    by_offset = [EqualTo(("partition",), 1), LessThan(("offset",), 7)]
    assert planned(either, by_offset, subscribe=topic) == ({(topic, 1, 0, 7)}, 0)
    moment = datetime(1970, 1, 1, 0, 0, 1, 4000, tzinfo=UTC)
    by_time = [GreaterThanOrEqual(("timestamp",), moment), StringContains(("value",), "9")]
    assert planned(either, by_time, subscribe=topic) == ({(topic, p, 4, 10) for p in range(3)}, 2)


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
        by_time = [GreaterThanOrEqual(("timestamp",), moment)]
        assert planned(either, by_time, subscribe=topic)[0] == {(topic, 0, first, 3)}
        by_option = planned(either, [], subscribe=topic, startingTimestamp=moment.isoformat())
        assert by_option[0] == {(topic, 0, first, 3)}


def test_a_count_of_one_partition_reads_that_partition_alone(
    node: Node, spark: Any, make_topic: MakeTopic
) -> None:
    """The other one has a record that cannot be read."""
    topic = make_topic(node, partitions=2, message_timestamp_after_max_ms=str(2**63 - 1))
    put(node, topic, 0, range(1000, 1020))
    put(node, topic, 1, [2**62])
    ottla.lake.register(spark)
    frame = (
        spark.read.format("ottla")
        .option("kafka.bootstrap.servers", node.bootstrap)
        .option("subscribe", topic)
        .load()
    )

    with pytest.raises(Exception, match="timestamp"):
        frame.count()
    assert frame.where("partition = 0").count() == 20
    assert frame.where("partition = 99").count() == 0
    assert frame.where("partition < 1 and offset >= 5 and offset % 2 = 0").count() == 7
    since = "timestamp >= timestamp_millis(1015)"
    assert frame.where(since).where("partition = 0").count() == 5


def test_several_topics_by_list_and_by_pattern(either: Node, make_topic: MakeTopic) -> None:
    """Of the cluster's own topics none is meant by a pattern. A topic can be a condition, too."""
    first, second = make_topic(either, partitions=1), make_topic(either, partitions=1)
    put(either, first, 0, range(5))
    put(either, second, 0, range(8))
    both = {(first, 0, 0, 5), (second, 0, 0, 8)}

    assert planned(either, [], subscribe=f"{first},{second}")[0] == both
    assert planned(either, [], subscribePattern=f"{first}|{second}")[0] == both
    assert planned(either, [EqualTo(("topic",), second)], subscribePattern="lake-.*") == (
        {(second, 0, 0, 8)},
        0,
    )
    third = json.dumps({second: {"0": 3}})
    part = planned(either, [], subscribe=f"{first},{second}", startingOffsets=third)[0]
    assert part == {(first, 0, 0, 5), (second, 0, 3, 8)}
    everything = planned(either, [], subscribePattern=".*")[0]
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
