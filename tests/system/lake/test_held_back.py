"""An open transaction that holds back the end of a stream is named; asked of real brokers."""

import logging
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from rig.nodes import Node

from ottla.lake.source.planner import StreamPlanner
from ottla.lake.source.source_options import parse_options

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def test_the_transaction_and_its_producer_are_named_once_a_minute(
    either: Node, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """Records behind it are committed already, and wait for its end."""
    topic = make_topic(either, partitions=2)
    producer = Producer(
        {"bootstrap.servers": either.bootstrap, "transactional.id": f"of-{topic}", "log_level": 0}
    )
    producer.init_transactions(90)
    producer.begin_transaction()
    for number in range(5):
        producer.produce(topic, b"%d" % number, partition=1)
    producer.flush()
    now_s = [1000.0]
    options = parse_options({"subscribe": topic, "kafka.bootstrap.servers": either.bootstrap})
    planner = StreamPlanner(options, {}, now_s=lambda: now_s[0], sleep=lambda _seconds: None)
    try:
        at = planner.initial()
        with caplog.at_level(logging.WARNING, "ottla.lake"):
            for _ in range(8):
                assert planner.latest(at, limited=True) == at
                now_s[0] += 5
    finally:
        planner.close()

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"{topic}-1 is read up to offset 0 only, though it has records up to 5")
    assert f"'of-{topic}' (producer id " in line
    producer.abort_transaction(90)
