"""`write.format("ottla")`, and what the sink refuses."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rig.nodes import Node

import ottla.lake
from tests.system.lake.test_sink import committed

MakeTopic = Callable[..., str]
AT = datetime(2026, 1, 1, tzinfo=UTC)


def save(frame: Any, node: Node, mode: str = "append", **options: str) -> None:
    writer = (
        frame.write.format("ottla").mode(mode).option("kafka.bootstrap.servers", node.bootstrap)
    )
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save()


def test_every_column_arrives(spark: Any, either: Node, make_topic: MakeTopic) -> None:
    """Key, value, headers, partition and timestamp, in the topic of the column."""
    ottla.lake.register(spark)
    topic = make_topic(either, partitions=2)
    schema = (
        "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, "
        "topic STRING, partition INT, timestamp TIMESTAMP"
    )
    rows = [
        (b"k", b"v", [("a", b"1"), ("a", None)], topic, 1, AT),
        (None, None, None, topic, 0, AT),
    ]
    save(spark.createDataFrame(rows, schema), either, **{"kafka.compression.type": "zstd"})
    found = {
        p: [(m.key(), m.value(), m.headers(), m.timestamp()[1]) for m in messages]
        for p, messages in committed(either, topic).items()
    }
    at_ms = int(AT.timestamp() * 1000)
    assert found == {
        0: [(None, None, None, at_ms)],
        1: [(b"k", b"v", [("a", b"1"), ("a", None)], at_ms)],
    }


def test_batch_with_an_id_is_written_once(spark: Any, node: Node, make_topic: MakeTopic) -> None:
    """Run again, as a job is after it failed behind its commit, it writes nothing."""
    ottla.lake.register(spark)
    topic = make_topic(node, partitions=2)
    frame = spark.range(0, 1_000, 1, 3).selectExpr("cast(id AS string) AS value")
    for _ in range(2):
        save(frame, node, topic=topic, id=f"job-{topic}")
    numbers = sorted(int(m.value()) for p in committed(node, topic).values() for m in p)
    assert numbers == list(range(1_000))


def test_batch_whose_task_fails_leaves_nothing(
    spark: Any, node: Node, make_topic: MakeTopic
) -> None:
    """A row that no topic takes: all rows of all tasks stay away."""
    ottla.lake.register(spark)
    topic = make_topic(node, partitions=2)
    frame = spark.range(0, 100, 1, 3).selectExpr(
        "cast(id AS string) AS value", "IF(id = 77, 9, 0) AS partition"
    )
    with pytest.raises(Exception, match=r"a row's partition is 9; .* has 0 to 1"):
        save(frame, node, topic=topic)
    assert committed(node, topic) == {0: [], 1: []}


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("id", {"topic": "t"}, "there is no column 'value'"),
        ("id AS value", {"topic": "t"}, "column 'value' is bigint, not binary or string"),
        ("'v' AS value", {}, "to which topic"),
        ("'v' AS value", {"topic": "t", "idd": "1"}, "there is no option 'idd'; did you mean id"),
        (
            "'v' AS value",
            {"topic": "t", "kafka.compression.type": "brotli"},
            "compression.type is 'brotli'",
        ),
        ("'v' AS value", {"topic": "no-such-topic"}, "there is no topic 'no-such-topic'"),
    ],
)
def test_wrong_words_are_refused_with_the_right_ones(
    spark: Any, node: Node, columns: str, options: dict[str, str], words: str
) -> None:
    ottla.lake.register(spark)
    with pytest.raises(Exception, match=words):
        save(spark.range(3).selectExpr(columns), node, **options)


def test_topics_are_not_overwritten(spark: Any, node: Node) -> None:
    ottla.lake.register(spark)
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        save(spark.range(3).selectExpr("'v' AS value"), node, mode="overwrite", topic="t")
