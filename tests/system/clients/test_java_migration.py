"""Java's consumers take a group from the classic protocol to the consumer protocol and back."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from rig.tools import Tools

from tests.system.clients.test_java_clients import consumer_of, items, producer_of

PARTITIONS = 6
PATIENCE_S = 120
CLASSIC = {
    "group_protocol": "classic",
    "heartbeat_interval_ms": 500,
    "enable_auto_commit": "true",
}
CONSUMER = {"group_protocol": "consumer", "enable_auto_commit": "true"}


def partitions(consumer: Any) -> set[int]:
    return {each.partition() for each in items(consumer.assignment())}


@pytest.mark.timeout(400)
def test_java_consumers_are_replaced_one_by_one_while_the_group_reads_on(
    jvm: Tools, bootstrap: str, make_topic: Callable[..., str], group: str
) -> None:
    """With their default assignors; no two ever have one partition, and every record is read."""
    topic = make_topic(partitions=PARTITIONS)
    producer = producer_of(jvm, bootstrap)
    duration = jvm.jvm.java.time.Duration.ofMillis(100)
    readers: list[Any] = []
    sent = 0
    values: set[int] = set()

    def poll() -> None:
        for reader in readers:
            values.update(int(each.value()) for each in items(reader.poll(duration)))
            shares = [partitions(each) for each in readers]
            assert sum(map(len, shares)) == len(set().union(*shares)), shares

    def settle() -> None:
        nonlocal sent
        deadline_s = time.monotonic() + PATIENCE_S
        quiet = 0
        before: list[set[int]] = []
        while quiet < 5:
            producer.send(
                jvm.jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, str(sent))
            )
            sent += 1
            poll()
            shares = [partitions(reader) for reader in readers]
            is_whole = sum(map(len, shares)) == PARTITIONS and all(shares)
            quiet = quiet + 1 if is_whole and shares == before else 0
            before = shares
            assert time.monotonic() < deadline_s, shares

    def start(settings: dict[str, object]) -> None:
        reader = consumer_of(jvm, bootstrap, group, **settings)
        reader.subscribe([topic])
        readers.append(reader)
        settle()

    def stop() -> None:
        readers.pop(0).close()
        settle()

    start(CLASSIC)
    start(CLASSIC)
    for settings in (CONSUMER, CLASSIC):
        for _ in range(2):
            start(settings)
            stop()
    producer.flush()
    producer.close()
    deadline_s = time.monotonic() + PATIENCE_S
    while len(values) < sent:
        poll()
        assert time.monotonic() < deadline_s, set(range(sent)) - values
    for reader in readers:
        reader.close()
    assert values == set(range(sent))
