"""Everything holds against Apache Kafka too: aborted transactions, compaction, damaged rows."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.client import sync
from ottla.client.admin.configs import ConfigResourceType
from ottla.lake import run_here
from ottla.lake.edges.datasource import OttlaSource

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def rows(target: Path) -> list[tuple[bytes, bytes]]:
    return [
        (row["key"], row["value"])
        for path in ottla.lake.files(str(target))
        for row in pq.read_table(path).to_pylist()
    ]


def test_plain_topic(
    kafka_node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(kafka_node, partitions=3)
    produce(kafka_node, topic, 0, 1000, **{"compression.type": "lz4"})
    done = ottla.lake.load(
        topic, str(tmp_path), bootstrap=kafka_node.bootstrap, spark_session=spark
    )

    assert done.rows == 1000
    assert ottla.lake.verify(str(tmp_path), bootstrap=kafka_node.bootstrap).compared == 1000


def test_aborted_transactions_stay_out_and_are_counted(
    kafka_node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Each aborted record and marker has its term; two loads cut between transactions (P13)."""
    topic = make_topic(kafka_node, partitions=1)
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=kafka_node.bootstrap, runner=run_here
    )
    producer = Producer(
        {
            "bootstrap.servers": kafka_node.bootstrap,
            "transactional.id": topic,
            "log_level": 0,
        }
    )
    producer.init_transactions(90)
    kept = []
    for turn in range(6):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, b"%d-%d" % (turn, number), b"k", partition=0)
        producer.flush()  # So that what is aborted stands in the log.
        if turn % 2:
            producer.abort_transaction(90)
        else:
            producer.commit_transaction(90)
            kept += [(b"k", b"%d-%d" % (turn, number)) for number in range(10)]
        if turn == 2:
            load()
    done = load()

    assert rows(tmp_path) == kept
    assert done.manifest is not None
    found = ottla.lake.verify(str(tmp_path), bootstrap=kafka_node.bootstrap)
    assert found.proven
    ledger = found.ledgers[0]
    assert (ledger.loaded, ledger.aborted, ledger.control) == (30, 30, 6)
    assert (ledger.end, ledger.unexplained) == (66, 0)


def test_compacted_offsets_are_counted_as_compacted(
    kafka_node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Kafka's own cleaner takes records away; headers around the gaps explain every offset."""
    topic = make_topic(
        kafka_node,
        partitions=1,
        cleanup_policy="compact",
        segment_ms="300",
        min_cleanable_dirty_ratio="0.01",
    )
    for _ in range(6):
        produce(kafka_node, topic, 0, 300)
        time.sleep(0.4)  # The next batch is young enough to open another segment.
    deadline = time.monotonic() + 200
    while True:
        target = tmp_path / str(time.monotonic_ns())
        done = ottla.lake.load(topic, str(target), bootstrap=kafka_node.bootstrap, runner=run_here)
        (ledger,) = done.ledgers
        assert ledger.loaded + ledger.compacted == 1800
        if ledger.compacted > 0:
            break
        assert time.monotonic() < deadline, "Kafka's cleaner did not run"
        time.sleep(1)

    assert {key for key, _ in rows(target)} == {b"k%d" % n for n in range(300)}
    assert ottla.lake.verify(str(target), bootstrap=kafka_node.bootstrap).proven


def test_a_topic_that_was_compacted_once_is_loaded_and_proven(
    kafka_node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Its policy is delete by now: the log itself shows that offsets are absent at the source."""
    topic = make_topic(
        kafka_node,
        partitions=1,
        cleanup_policy="compact",
        segment_ms="300",
        min_cleanable_dirty_ratio="0.01",
    )
    load = partial(ottla.lake.load, topic, bootstrap=kafka_node.bootstrap, runner=run_here)
    before, after = tmp_path / "before", tmp_path / "after"
    # What was loaded before the cleaner came is proven, too.
    produce(kafka_node, topic, 0, 300)
    load(str(before))
    for _ in range(4):
        time.sleep(0.4)  # The next batch is young enough to open another segment.
        produce(kafka_node, topic, 0, 300)
    deadline = time.monotonic() + 200
    while load(str(tmp_path / str(time.monotonic_ns()))).rows == 1500:
        assert time.monotonic() < deadline, "Kafka's cleaner did not run"
        time.sleep(1)
    set_policy(kafka_node, topic, "delete")

    (ledger,) = load(str(after)).ledgers
    assert ledger.absent > 0
    assert (ledger.loaded + ledger.absent, ledger.compacted, ledger.unexplained) == (1500, 0, 0)
    assert {key for key, _ in rows(after)} == {b"k%d" % n for n in range(300)}
    load(str(before))
    for target in (before, after):
        assert ottla.lake.verify(str(target), bootstrap=kafka_node.bootstrap).problems == []
    source = OttlaSource(
        {"subscribe": topic, "kafka.bootstrap.servers": kafka_node.bootstrap}
    ).reader(None)
    read = [batch.num_rows for one in source.partitions() for batch in source.read(one)]
    assert sum(read) == ledger.loaded


def set_policy(node: Node, topic: str, policy: str) -> None:
    """Change the topic's cleanup policy."""
    with sync.Admin(node.bootstrap) as admin:
        admin.configs.alter(ConfigResourceType.TOPIC, topic, {"cleanup.policy": policy})
