"""`ottla topic users`, `ottla topic unused`, `ottla why slow`: what brokers know of clients."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import ottla.testing
from ottla.client import sync
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command


@pytest.fixture
def run(broker: ottla.testing.Broker) -> Iterator[Command]:
    return CommandHere(broker.bootstrap)


def write(bootstrap: str, topic: str, client_id: str, count: int = 1) -> None:
    """Write with librdkafka, one batch for each record, so that the fast path serves most."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id})
    for _ in range(count):
        producer.produce(topic, b"x" * 100)
        assert producer.flush(60) == 0


def test_the_users_of_a_topic_are_shown_for_any_client(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Direction, client id, principal, library with its version, bytes of all its batches."""
    topic = make_topic()
    write(broker.bootstrap, topic, "billing", 5)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "readers",
            "client.id": "audit",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    assert len(consumer.consume(5, timeout=120)) == 5
    consumer.close()
    with sync.Producer(broker.bootstrap, client_id="ours") as producer:
        producer.send(topic, b"value").result()
    answer = run("topic", "users", topic, "-o", "json").json
    found = {(one["direction"], one["client_id"]): one for one in answer["users"]}
    assert set(found) == {("produce", "billing"), ("produce", "ours"), ("fetch", "audit")}
    written, read = found["produce", "billing"], found["fetch", "audit"]
    assert written["principal"] == "User:ANONYMOUS"
    assert written["library"].startswith("confluent-kafka-python 2.")
    # Each batch has a header of 61 bytes.
    assert found["produce", "ours"]["library"].startswith("ottla ")
    assert 5 * 161 < written["size_bytes"] < 5 * 200
    assert read["size_bytes"] == written["size_bytes"]
    shown = run("topic", "users", topic).out
    assert "billing" in shown
    assert "confluent-kafka-python" in shown
    assert "no topic" in run.refused("topic", "users", "absent")


def test_unused_topics_are_listed_only_if_they_were_watched_for_so_long(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A topic that was used is not, one that is not known for so long is named apart."""
    used, idle = make_topic(), make_topic()
    write(broker.bootstrap, used, "billing")
    answer = run("topic", "unused", "--for", "30d", "-o", "json").json
    assert idle in answer["not_known"]
    assert used not in answer["not_known"]
    assert answer["unused"] == []
    assert "not all brokers have watched" in run("topic", "unused", "--for", "30d").out


def test_uses_are_known_after_a_restart(tmp_path: Path) -> None:
    """From a file of the broker; the counters go on."""
    for restarts in range(2):
        with ottla.testing.Broker(storage=tmp_path / "data") as broker:
            if not restarts:
                broker.create_topic("t", 1)
            write(broker.bootstrap, "t", "billing", 2)
            run = CommandHere(broker.bootstrap)
            (row,) = run("topic", "users", "t", "-o", "json").json["users"]
            assert 161 * 2 * (restarts + 1) < row["size_bytes"]
            assert run("topic", "users", "t", "-o", "json").json["unknown_minute_before"] == {}


def test_the_failures_of_a_client_are_explained(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A fetch from where there is nothing, with the range of the log."""
    topic = make_topic()
    write(broker.bootstrap, topic, "w")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "client.id": "stuck",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 999)])
    failed = consumer.poll(120)
    assert failed is not None
    assert failed.error() is not None
    consumer.close()
    answer = run("why", "slow", "--client-id", "stuck", "-o", "json").json
    (failure,) = [one for one in answer["failures"] if one["api"] == "FETCH"]
    assert failure["place"] == [topic, 0]
    assert "cannot be read at 999 here: its log holds 0 to 1" in failure["detail"]
    assert f"{topic}-0" in run("why", "slow", "--client-id", "stuck").out
    assert "no broker noted" in run("why", "slow", "--client-id", "other").out
