"""Quotas with real clients: kafka-configs sets them, producers and consumers keep to them.

Bounds are wide above, for a busy machine is slow. Below they are what the quota allows: Kafka
lets a client use ten seconds' worth at once, so that there is none there.
"""

import os
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer
from rig import tools as t
from rig.nodes import Node
from rig.tools import Tools

Run = Callable[..., t.Ran]
MakeTopic = Callable[..., str]

RATE = 200_000
RECORD = b"x" * 10_000
COUNT = 100
PATIENCE_S = 200
# A second's worth may be used in advance, and the last request is not waited for.
SOONEST_S = (COUNT * len(RECORD) - 30_000) / RATE - 1
ON_KAFKA = os.environ.get("OTTLA_TEST_BROKER") == "kafka"


@pytest.fixture
def run(jvm: Tools, node: Node) -> Iterator[Run]:
    """`run(t.CONFIGS, …)` against the broker; the quotas that it set are removed at the end."""
    set_so_far: list[tuple[object, ...]] = []

    def tool(name: str, *arguments: object) -> t.Ran:
        if "--add-config" in arguments:
            key = str(arguments[-1]).partition("=")[0]
            whom = arguments[: arguments.index("--alter")]
            set_so_far.append((*whom, "--alter", "--delete-config", key))
        return jvm.run(name, "--bootstrap-server", node.bootstrap, *arguments)

    yield tool
    for arguments in set_so_far:
        # What a test has removed itself is not there.
        jvm.run(t.CONFIGS, "--bootstrap-server", node.bootstrap, *arguments)


def produce(bootstrap: str, topic: str, client_id: str) -> float:
    """Send all records, in requests of one or two; how many seconds that took."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "batch.size": 2 * len(RECORD),
            "log_level": 0,
        }
    )
    began_s = time.monotonic()
    for _ in range(COUNT):
        producer.produce(topic, RECORD)
    assert producer.flush(PATIENCE_S) == 0
    return time.monotonic() - began_s


def test_kafka_configs_sets_tells_and_removes_quotas(run: Run) -> None:
    """Of clients, users, users with clients, addresses, and of all others."""
    entities = (
        (("--entity-type", "clients", "--entity-name", "c 1"), "producer_byte_rate=1048576"),
        (("--entity-type", "clients", "--entity-default"), "consumer_byte_rate=2097152"),
        (("--entity-type", "users", "--entity-default"), "controller_mutation_rate=5.5"),
        (
            (
                *("--entity-type", "users", "--entity-name", "u"),
                *("--entity-type", "clients", "--entity-name", "c"),
            ),
            "request_percentage=150",
        ),
        (("--entity-type", "users", "--entity-name", "v"), "producer_byte_rate=9000"),
        (("--entity-type", "ips", "--entity-name", "10.1.2.3"), "connection_creation_rate=7"),
    )
    for entity, setting in entities:
        run(t.CONFIGS, *entity, "--alter", "--add-config", setting).ok()
    told = [run(t.CONFIGS, *entity, "--describe").ok() for entity, _ in entities]
    for entity, setting in entities:
        key = setting.partition("=")[0]
        run(t.CONFIGS, *entity, "--alter", "--delete-config", key).ok()
    after = [run(t.CONFIGS, *entity, "--describe").ok() for entity, _ in entities]

    assert "Quota configs for client-id 'c 1' are producer_byte_rate=1048576.0" in told[0]
    assert "Quota configs for the default client-id are consumer_byte_rate=2097152.0" in told[1]
    assert "Quota configs for the default user-principal" in told[2]
    assert "controller_mutation_rate=5.5" in told[2]
    assert "for user-principal 'u', client-id 'c' are request_percentage=150.0" in told[3]
    assert "Quota configs for user-principal 'v' are producer_byte_rate=9000.0" in told[4]
    assert "Quota configs for ip '10.1.2.3' are connection_creation_rate=7.0" in told[5]
    assert [text for text in after if "=" in text] == []


def test_kafka_configs_is_told_what_is_wrong(run: Run) -> None:
    """An unknown quota, a negative rate, and what belongs to another kind of entity."""
    client = ("--entity-type", "clients", "--entity-name", "c", "--alter", "--add-config")
    unknown = run(t.CONFIGS, *client, "speed=1")
    negative = run(t.CONFIGS, *client, "producer_byte_rate=-5")

    assert unknown.exit_code != 0
    assert "speed" in unknown.out + unknown.err
    assert negative.exit_code != 0
    assert "must be greater than 0" in negative.out + negative.err


def test_a_producer_and_a_consumer_keep_to_the_quota_of_their_client_id(
    run: Run, node: Node, make_topic: MakeTopic
) -> None:
    """1 MB at 200 KB/s each; another client id is not slowed."""
    topic, other = make_topic(), make_topic()
    client = ("--entity-type", "clients", "--entity-name", "slow", "--alter", "--add-config")
    run(t.CONFIGS, *client, f"producer_byte_rate={RATE}").ok()
    run(t.CONFIGS, *client, f"consumer_byte_rate={RATE}").ok()
    took_s = produce(node.bootstrap, topic, "slow")
    produce(node.bootstrap, other, "quick")

    # From before the first fetch: joining takes a moment, and reading must take the rest.
    began_s = time.monotonic()
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "client.id": "slow",
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes | None] = []
    while len(values) < COUNT:
        assert time.monotonic() < began_s + PATIENCE_S, f"only {len(values)} of {COUNT} came"
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    read_s = time.monotonic() - began_s
    consumer.close()

    assert values == [RECORD] * COUNT
    if not ON_KAFKA:
        assert took_s >= SOONEST_S
        assert read_s >= SOONEST_S - 1


def test_a_java_producer_tells_that_it_was_slowed(
    run: Run, node: Node, jvm: Tools, make_topic: MakeTopic
) -> None:
    """The user's quota holds for every client id; Java's metrics show the throttle time."""
    topic = make_topic()
    user = ("--entity-type", "users", "--entity-name", "ANONYMOUS", "--alter", "--add-config")
    run(t.CONFIGS, *user, f"producer_byte_rate={RATE}").ok()
    ran = jvm.run(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", COUNT * 20, "--record-size", 1000),
        *("--throughput", -1, "--print-metrics"),
        *("--producer-props", f"bootstrap.servers={node.bootstrap}", "client.id=java"),
    ).ok()

    throttled = [
        float(line.rpartition(":")[2])
        for line in ran.splitlines()
        if "produce-throttle-time-max" in line
    ]
    assert f"{COUNT * 20} records sent" in ran
    assert throttled
    assert ON_KAFKA or max(throttled) > 0


def test_kafka_python_reads_to_the_end_under_a_quota(
    run: Run, node: Node, make_topic: MakeTopic
) -> None:
    """Empty answers that only say to wait do not trouble it."""
    topic = make_topic()
    produce(node.bootstrap, topic, "quick")
    client = ("--entity-type", "clients", "--entity-name", "patient", "--alter", "--add-config")
    run(t.CONFIGS, *client, f"consumer_byte_rate={2 * RATE}").ok()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=node.bootstrap,
        client_id="patient",
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    values = [record.value for _, record in zip(range(COUNT), consumer, strict=False)]
    consumer.close()

    assert values == [RECORD] * COUNT


def test_who_changes_topics_too_fast_is_told(run: Run, group: str) -> None:
    """60 partitions at one a second, eleven in advance: the next has to wait (KIP-599).

    A tool makes them: its connection is not heard for 49 seconds, and nobody else needs it.
    """
    user = ("--entity-type", "users", "--entity-default", "--alter", "--add-config")
    run(t.CONFIGS, *user, "controller_mutation_rate=1").ok()
    name = f"{group}-topic"
    run(t.TOPICS, "--create", "--topic", name, "--partitions", 60).ok()
    refused = run(t.TOPICS, "--create", "--topic", f"{name}-later", "--partitions", 1)

    assert refused.exit_code == 1
    assert "The throttling quota has been exceeded" in refused.out + refused.err
