"""`ottla why rebalance`: who joined, left or was late, what it cost, which setting decided."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest

import ottla.testing
from tests.system.cli.ottla_command import Command

PATIENCE_S = 180
SETTINGS = {
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "8000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}
KAFKA_PYTHON = """
import sys, kafka
consumer = kafka.KafkaConsumer(
    sys.argv[2], bootstrap_servers=sys.argv[1], group_id=sys.argv[3], client_id="victim",
    session_timeout_ms=8000, heartbeat_interval_ms=500, metadata_max_age_ms=1000)
while True:
    consumer.poll(timeout_ms=200)
"""
LIBRDKAFKA = """
import sys, confluent_kafka
consumer = confluent_kafka.Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[3],
    "client.id": "victim", "group.protocol": "consumer"})
consumer.subscribe([sys.argv[2]])
while True:
    consumer.poll(0.2)
"""
CLASSIC = {"session.timeout.ms": 120_000, "heartbeat.interval.ms": 500}


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.testing.Broker]:
    with ottla.testing.Broker(settings=SETTINGS) as running:
        yield running


@contextmanager
def polling(broker: ottla.testing.Broker, topic: str, settings: dict[str, Any]) -> Iterator[None]:
    """A librdkafka consumer `survivor` in a thread, polled all the time."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "client.id": "survivor",
            "log_level": 0,
            **settings,
        }
    )
    consumer.subscribe([topic])
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("script", "settings", "protocol", "setting"),
    [
        (KAFKA_PYTHON, CLASSIC, "classic", "session.timeout.ms=8000"),
        (
            LIBRDKAFKA,
            {"group.protocol": "consumer"},
            "consumer",
            "group.consumer.session.timeout.ms=8000",
        ),
    ],
)
def test_a_killed_member_is_told_with_what_decided(
    broker: ottla.testing.Broker,
    make_topic: Callable[..., str],
    script: str,
    settings: dict[str, Any],
    protocol: str,
    setting: str,
) -> None:
    """It says nothing any more; the setting that ends its session says when the others go on."""
    run = Command(broker.bootstrap)
    topic = make_topic(partitions=6)

    def rebalances() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = run("why", "rebalance", topic, "-o", "json").json[
            "rebalances"
        ]
        return found

    def await_stable(members: int) -> dict[str, Any]:
        broker.until_assigned(topic, partitions=6, members=members, timeout=PATIENCE_S)
        last = rebalances()[-1]
        assert (last["ending"], last["members"]) == ("stable", members)
        return last

    with polling(broker, topic, settings):
        assert await_stable(1)["moved"] == 6
        victim = subprocess.Popen([sys.executable, "-c", script, broker.bootstrap, topic, topic])
        try:
            shared = await_stable(2)
        finally:
            victim.kill()
            victim.wait()
        assert (shared["protocol"], shared["partition_count"]) == (protocol, 6)
        last = await_stable(1)
        assert last["moved"] > 0
        late = [
            (cause["kind"], cause["setting"])
            for told in rebalances()
            for cause in told["causes"]
            if cause["client_id"] == "victim" and cause["kind"] == "late"
        ]
        assert late[-1] == ("late", setting)
        text = run("why", "rebalance", topic, "--all").out
    assert f"{topic}  Stable  members 1  coordinated by broker 0" in text
    assert f"  decided by  {setting}" in text
    assert "it sent no heartbeat for 8000 ms" in text
    assert "partitions" in text


def test_a_group_without_a_story_says_so(
    broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """A group that only stores offsets never rebalanced; one that does not exist is refused."""
    run = Command(broker.bootstrap)
    topic = make_topic()
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": topic, "log_level": 0}
    )
    place = confluent_kafka.TopicPartition(topic, 0, 0)
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()
    assert "no broker remembers a rebalance of it" in run("why", "rebalance", topic).out
    assert "no such group" in run.refused("why", "rebalance", f"{topic}-none")
