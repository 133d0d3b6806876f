"""Java's own clients (4.3) used as a program uses them: producer, consumer, admin."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from rig.tools import Tools

py4j = pytest.importorskip("py4j.protocol", reason="Py4J comes with PySpark")
MakeTopic = Callable[..., str]
PATIENCE_S = 120
SERDE = "org.apache.kafka.common.serialization.String"


def properties(jvm: Tools, **settings: object) -> Any:
    made = jvm.jvm.java.util.Properties()
    for name, value in settings.items():
        made.put(name.replace("_", "."), str(value))
    return made


def producer_of(jvm: Tools, bootstrap: str, **settings: object) -> Any:
    return jvm.jvm.org.apache.kafka.clients.producer.KafkaProducer(
        properties(
            jvm,
            bootstrap_servers=bootstrap,
            key_serializer=f"{SERDE}Serializer",
            value_serializer=f"{SERDE}Serializer",
            **settings,
        )
    )


def consumer_of(jvm: Tools, bootstrap: str, group: str, **settings: object) -> Any:
    return jvm.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
        properties(
            jvm,
            bootstrap_servers=bootstrap,
            group_id=group,
            key_deserializer=f"{SERDE}Deserializer",
            value_deserializer=f"{SERDE}Deserializer",
            **{"auto_offset_reset": "earliest", "enable_auto_commit": "false", **settings},
        )
    )


def record(jvm: Tools, topic: str, value: str) -> Any:
    return jvm.jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, value)


def items(iterable: Any) -> list[Any]:
    """The elements of a Java Iterable."""
    iterator = iterable.iterator()
    found = []
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def poll(jvm: Tools, consumer: Any, count: int) -> list[Any]:
    """The next so many records."""
    found: list[Any] = []
    for _ in range(400):
        found += items(consumer.poll(jvm.jvm.java.time.Duration.ofMillis(300)))
        if len(found) >= count:
            return found
    raise AssertionError(f"only {len(found)} of {count} records came")


def test_idempotent_producer_with_its_defaults_is_served(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Java's producer is idempotent and waits for all replicas unless told otherwise (KIP-679)."""
    topic = make_topic()
    producer = producer_of(jvm, bootstrap)
    futures = [producer.send(record(jvm, topic, f"v{i}")) for i in range(200)]
    producer.flush()
    offsets = [future.get().offset() for future in futures]
    producer.close()

    consumer = consumer_of(jvm, bootstrap, group)
    consumer.subscribe([topic])
    values = [r.value() for r in poll(jvm, consumer, 200)]
    consumer.commitSync()
    consumer.close()

    assert offsets == list(range(200))
    assert values == [f"v{i}" for i in range(200)]


def test_groups_share_partitions_with_every_assignor(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Eager and cooperative rebalances both end with half for each of two members (KIP-429)."""
    topic = make_topic(partitions=4)
    duration = jvm.jvm.java.time.Duration.ofMillis(100)
    for assignor in ("Range", "RoundRobin", "Sticky", "CooperativeSticky"):
        name = f"org.apache.kafka.clients.consumer.{assignor}Assignor"
        members = [
            consumer_of(
                jvm,
                bootstrap,
                f"{group}-{assignor}",
                partition_assignment_strategy=name,
                heartbeat_interval_ms=200,
            )
            for _ in range(2)
        ]
        shares: list[int] = []
        for consumer in members:
            consumer.subscribe([topic])
        deadline_s = time.monotonic() + PATIENCE_S
        while shares != [2, 2]:
            assert time.monotonic() < deadline_s, (assignor, shares)
            for consumer in members:
                consumer.poll(duration)
            shares = [consumer.assignment().size() for consumer in members]
        for consumer in members:
            consumer.close()


def test_consumer_resumes_at_the_committed_offset_with_its_metadata(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    producer = producer_of(jvm, bootstrap)
    for i in range(10):
        producer.send(record(jvm, topic, f"v{i}"))
    producer.close()
    java = jvm.jvm.org.apache.kafka
    partition = java.common.TopicPartition(topic, 0)
    committed = java.clients.consumer.OffsetAndMetadata(6, "six")

    first = consumer_of(jvm, bootstrap, group)
    first.assign([partition])
    first.commitSync({partition: committed})
    first.close()
    second = consumer_of(jvm, bootstrap, group)
    second.subscribe([topic])
    values = [r.value() for r in poll(jvm, second, 4)]
    metadata = second.committed({partition}).get(partition).metadata()
    second.close()

    assert values == ["v6", "v7", "v8", "v9"]
    assert metadata == "six"


def test_log_append_time_is_the_brokers_clock(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """LogAppendTime stamps each batch with the broker's clock, and the consumer is told so."""
    topic = make_topic(message_timestamp_type="LogAppendTime")
    producer = producer_of(jvm, bootstrap)
    new_record = jvm.jvm.org.apache.kafka.clients.producer.ProducerRecord
    producer.send(new_record(topic, 0, 1000, "k", "v"))
    producer.close()

    consumer = consumer_of(jvm, bootstrap, group)
    consumer.subscribe([topic])
    (got,) = poll(jvm, consumer, 1)
    consumer.close()

    assert got.timestampType().name() == "LOG_APPEND_TIME"
    assert got.timestamp() > 1_600_000_000_000


def test_keyless_record_is_refused_by_a_compacted_topic(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic
) -> None:
    """A record without a key could never be replaced: InvalidRecordException."""
    topic = make_topic(cleanup_policy="compact")
    producer = producer_of(jvm, bootstrap)
    future = producer.send(record(jvm, topic, "no key"))

    with pytest.raises(py4j.Py4JJavaError, match="InvalidRecordException"):
        future.get()
    producer.close()


def test_admin_describes_topics_producers_and_features(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic
) -> None:
    """What Java's admin client asks of a single broker is answered, active producers included."""
    topic = make_topic(partitions=2)
    producer = producer_of(jvm, bootstrap)
    new_record = jvm.jvm.org.apache.kafka.clients.producer.ProducerRecord
    producer.send(new_record(topic, 0, "k", "v")).get()
    admin = jvm.jvm.org.apache.kafka.clients.admin.Admin.create(
        properties(jvm, bootstrap_servers=bootstrap)
    )
    partition = jvm.jvm.org.apache.kafka.common.TopicPartition(topic, 0)

    description = admin.describeTopics([topic]).allTopicNames().get().get(topic)
    producers = admin.describeProducers([partition]).partitionResult(partition).get()
    sequences = [p.lastSequence() for p in items(producers.activeProducers())]
    topic_id = description.topicId().toString()
    listed = [
        t.topicId().toString()
        for t in items(admin.listTopics().listings().get())
        if t.name() == topic
    ]
    admin.close()
    producer.close()

    assert [p.partition() for p in items(description.partitions())] == [0, 1]
    assert sequences == [0]
    assert listed == [topic_id]
    assert topic_id != "AAAAAAAAAAAAAAAAAAAAAA"


def test_a_pattern_that_the_broker_matches_is_followed(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """A consumer with a SubscriptionPattern asks for topics by their ids, beside an empty name."""
    first, other = make_topic(), make_topic()
    producer = producer_of(jvm, bootstrap)
    for topic in (first, other):
        for number in range(5):
            producer.send(record(jvm, topic, f"{topic}-{number}"))
    producer.flush()
    producer.close()
    consumer = consumer_of(jvm, bootstrap, group, group_protocol="consumer")
    pattern = jvm.jvm.org.apache.kafka.clients.consumer.SubscriptionPattern(f"{first}.*")
    consumer.subscribe(pattern)
    values = [each.value() for each in poll(jvm, consumer, 5)]
    assigned = {each.topic() for each in items(consumer.assignment())}
    consumer.close()
    assert values == [f"{first}-{number}" for number in range(5)]
    assert assigned == {first}
