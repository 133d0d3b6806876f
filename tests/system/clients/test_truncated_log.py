"""S6: unmodified consumers that have read what an unclean election drops notice it (KIP-320)."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster
from rig.consumer import close, read
from rig.tools import Tools

from .conftest import unique
from .test_java_clients import consumer_of, items

py4j = pytest.importorskip("py4j.protocol", reason="Py4J comes with PySpark")

PATIENCE_S = 120
# Both have three records; the first leader has three more, the second five of its own.
COMMON = [b"0", b"1", b"2"]
DROPPED = [b"old3", b"old4", b"old5"]
NEW = [b"new3", b"new4", b"new5", b"new6", b"new7"]


@pytest.fixture
def topic(whole: Cluster) -> Iterator[str]:
    """Led by broker 1 alone, with records that broker 2 lacks, which is down."""
    name = unique("truncated")
    admin = AdminClient({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    config = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = NewTopic(name, 1, replica_assignment=[[1, 2]], config=config)
    admin.create_topics([new])[name].result(90)
    whole.wait_until_in_sync(name)
    write(whole, name, COMMON)
    whole.members[2].kill()
    whole.wait_until(
        lambda: whole.agree(lambda seen: seen.topics[name][0].isr == (1,), [name]), "1 alone"
    )
    write(whole, name, DROPPED)
    yield name
    for member in whole.members.values():
        if not member.alive():
            member.start()
    whole.wait_until_in_sync(name)
    admin.delete_topics([name])[name].result(90)


def write(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    told: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _m: told.append(error)
        )
    assert producer.flush(120) == 0
    assert told == [None] * len(values)


def elect_the_other(cluster: Cluster, topic: str) -> None:
    """Broker 2 leads, which lacks three of six records, and writes five of its own."""
    cluster.members[1].kill()
    cluster.members[2].start()
    cluster.wait_until(
        lambda: cluster.agree(lambda seen: seen.topics[topic][0].leader == 2, [topic]), "2 leads"
    )
    write(cluster, topic, NEW)


def librdkafka(cluster: Cluster, topic: str, reset: str) -> Consumer:
    """It stands behind the last record of the first leader."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": unique("group"),
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in read(consumer, 6)]
    assert values == COMMON + DROPPED
    return consumer


def test_librdkafka_is_told_that_what_it_read_is_gone(whole: Cluster, topic: str) -> None:
    """Without a rule it reports the truncation, and gives out nothing that looks like a next."""
    consumer = librdkafka(whole, topic, "error")
    elect_the_other(whole, topic)
    told: list[KafkaError] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while not told:
        assert time.monotonic() < deadline_s, "it reports nothing"
        for message in consumer.consume(10, 1.0):
            assert message.error() is not None, message.value()
            if message.error().code() in (
                KafkaError._AUTO_OFFSET_RESET,
                KafkaError._LOG_TRUNCATION,
            ):
                told.append(message.error())
    close(consumer)
    assert "truncat" in told[0].str().lower()


def test_librdkafka_with_a_rule_misses_nothing(whole: Cluster, topic: str) -> None:
    """It resets by its rule, to the beginning: all that is in the log now is read."""
    consumer = librdkafka(whole, topic, "earliest")
    elect_the_other(whole, topic)
    values: list[bytes] = []
    while NEW[-1] not in values:
        values += [message.value() for message in read(consumer, 1)]
    close(consumer)
    assert values[-len(NEW) :] == NEW


def java_consumer(jvm: Tools, cluster: Cluster, topic: str, reset: str) -> Any:
    """Likewise."""
    consumer = consumer_of(jvm, cluster.bootstrap, unique("group"), auto_offset_reset=reset)
    partition = jvm.jvm.org.apache.kafka.common.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    assert poll(jvm, consumer, 6) == COMMON + DROPPED
    return consumer


def poll(jvm: Tools, consumer: Any, count: int) -> list[bytes]:
    """The next so many values."""
    values: list[bytes] = []
    wait = jvm.jvm.java.time.Duration.ofMillis(200)
    deadline_s = time.monotonic() + PATIENCE_S
    while len(values) < count:
        assert time.monotonic() < deadline_s, f"only {values} of {count} came"
        values += [record.value().encode() for record in items(consumer.poll(wait))]
    return values


def test_java_is_told_where_the_logs_part(jvm: Tools, whole: Cluster, topic: str) -> None:
    """Without a rule: LogTruncationException, with the offset that both have."""
    consumer = java_consumer(jvm, whole, topic, "none")
    elect_the_other(whole, topic)
    with pytest.raises(py4j.Py4JJavaError) as raised:
        poll(jvm, consumer, 1)
    error = raised.value.java_exception
    assert error.getClass().getSimpleName() == "LogTruncationException"
    (offset,) = error.divergentOffsets().values()
    assert offset.offset() == 3
    consumer.close()


def test_java_with_a_rule_goes_on_where_the_logs_part(
    jvm: Tools, whole: Cluster, topic: str
) -> None:
    """It reads what is new to it, once, and not from the start."""
    consumer = java_consumer(jvm, whole, topic, "earliest")
    elect_the_other(whole, topic)
    assert poll(jvm, consumer, len(NEW)) == NEW
    consumer.close()
