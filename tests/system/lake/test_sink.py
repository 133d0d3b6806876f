"""The sink `ottla`: rows of a stream or a batch in a topic, exactly once."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.errors import PySparkException
from rig.nodes import Node

import ottla.lake
from tests.system.lake.sink_query import COMMIT_STEPS, KEYS, drive, run_query, write_input

MakeTopic = Callable[..., str]
EPOCHS, ROWS = 4, 60


def await_markers(node: Node, topic: str) -> None:
    """Wait until no transaction is open: Kafka answers EndTxn before its markers are written."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    numbers = admin.list_topics(topic, 60).topics[topic].partitions
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in numbers}

    def ends(level: IsolationLevel) -> list[int]:
        found = admin.list_offsets(asked, isolation_level=level).values()
        return [one.result(60).offset for one in found]

    deadline = time.monotonic() + 60
    while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
        assert time.monotonic() < deadline, f"a transaction in {topic} is still open"
        time.sleep(0.02)


def committed(node: Node, topic: str) -> dict[int, list[Any]]:
    """What librdkafka reads with read_committed: the records of each partition, in order."""
    await_markers(node, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "test-sink",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, 60).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: dict[int, list[Any]] = {number: [] for number in partitions}
        at_end: set[int] = set()
        while at_end != set(partitions):
            message = consumer.poll(120)
            assert message is not None, "nothing more, and no end"
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                at_end.add(message.partition())
            else:
                found[message.partition()].append(message)
        return found
    finally:
        consumer.close()


def require_exactly_once(node: Node, topic: str, count: int) -> None:
    """Every number once, and those of each key in order."""
    found = committed(node, topic)
    numbers = sorted(int(m.value()) for messages in found.values() for m in messages)
    assert numbers == list(range(count))
    for messages in found.values():
        for key in range(KEYS):
            of_key = [int(m.value()) for m in messages if m.key() == b"k%d" % key]
            assert of_key == sorted(of_key)
            assert len(of_key) in (0, len(range(key, count, KEYS)))


def test_stream_arrives_once_and_in_order(
    spark: Any, either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(either, partitions=3)
    write_input(tmp_path / "in", EPOCHS, ROWS)
    run_query(spark, either.bootstrap, topic, tmp_path)

    require_exactly_once(either, topic, EPOCHS * ROWS)
    assert list((tmp_path / "checkpoint" / "ottla-sink").glob("*/*")) == []


@pytest.mark.timeout(600)
def test_stream_is_exact_whatever_is_killed_at_whichever_step(
    spark: Any, node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The process that commits is killed once after each of its steps, a task's worker twice.

    After the death of a committing process the query fails, and is started again as its user
    would; a task is tried again by Spark.
    """
    topic = make_topic(node, partitions=3)
    steps = [*COMMIT_STEPS, "task began", "task done"]
    fell: list[str] = []
    for epoch, step in enumerate(steps):
        write_input(tmp_path / "in", epoch + 1, ROWS)
        wanted = step.format(epoch=epoch)
        order = tmp_path / "order"
        order.write_text(f"{epoch} worker 0 {wanted}")
        try:
            run_query(spark, node.bootstrap, topic, tmp_path)
        except PySparkException:
            fell.append(step)
        assert not order.exists(), f"nothing was killed at {wanted!r}"
    run_query(spark, node.bootstrap, topic, tmp_path)

    assert fell == list(COMMIT_STEPS)
    require_exactly_once(node, topic, len(steps) * ROWS)


def test_first_epoch_that_was_left_in_the_program_is_of_another_query(
    spark: Any, node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """With a new checkpoint nothing is left out."""
    topic = make_topic(node, partitions=3)
    write_input(tmp_path / "in", 2, ROWS)
    left = "3d1e4f38-7c2f-44c0-9c5e-0d5f7ce6a1aa:2"
    run_query(spark, node.bootstrap, topic, tmp_path, firstEpoch=left)
    require_exactly_once(node, topic, 2 * ROWS)


def test_first_epoch_without_rows_that_name_their_topic_does_not_stop_the_query(
    spark: Any, either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(either, partitions=3)
    ottla.lake.register(spark)
    write_input(tmp_path / "in", 3, ROWS)
    rows = spark.readStream.schema("key STRING, value STRING").option("maxFilesPerTrigger", 1)
    frame = rows.json(str(tmp_path / "in")).where(f"int(value) >= {ROWS}")
    writer = frame.selectExpr("value", f"'{topic}' AS topic").writeStream.format("ottla")
    writer = writer.option("kafka.bootstrap.servers", either.bootstrap)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()

    found = committed(either, topic)
    numbers = sorted(int(m.value()) for messages in found.values() for m in messages)
    assert numbers == list(range(ROWS, 3 * ROWS))


@pytest.mark.timeout(600)
def test_stream_goes_on_in_another_driver(
    node: Node, make_topic: MakeTopic, tmp_path: Path, spark: Any
) -> None:
    """kill -9 of the driver after a commit that Spark has not noted yet; by hand at each step."""
    topic = make_topic(node, partitions=3)
    write_input(tmp_path / "in", 3, ROWS)
    (tmp_path / "order").write_text("1 driver 0 committed")
    assert drive(node.bootstrap, topic, tmp_path) != 0
    assert not (tmp_path / "order").exists()
    run_query(spark, node.bootstrap, topic, tmp_path)

    require_exactly_once(node, topic, 3 * ROWS)
