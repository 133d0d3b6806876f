"""librdkafka's share consumer (KIP-932): records of a topic as a queue."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Message, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from rig.consumer import close

from tests.system.clients.conftest import MakeTopic, unique

PATIENCE_S = 60


def configure(admin: AdminClient, group: str, **configs: str) -> None:
    """Set what a group reads before its first member comes."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(120)


@contextmanager
def member(bootstrap: str, group: str, topic: str, **configs: Any) -> Iterator[ShareConsumer]:
    """A share consumer that is closed in the end."""
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    consumer = ShareConsumer(settings | {key.replace("_", "."): v for key, v in configs.items()})
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        close(consumer)


def produce(bootstrap: str, topic: str, count: int, since: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 5})
    for number in range(since, since + count):
        producer.produce(topic, str(number).encode(), partition=-1)
    assert producer.flush(120) == 0


def poll_until(consumer: ShareConsumer, count: int) -> list[Message]:
    """At least so many records, unless there are none for a long time."""
    found: list[Message] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        found += [each for each in consumer.poll(1.0) if each.error() is None]
    return found


def numbers(messages: list[Message]) -> list[int]:
    return sorted(int(each.value()) for each in messages)


@pytest.fixture
def group(admin: AdminClient) -> str:
    """A group that begins at the log's start."""
    name = unique("share")
    configure(admin, name, share_auto_offset_reset="earliest")
    return name


def test_a_member_gets_every_record_once(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    """Accepted implicitly with a commit, and not given out again."""
    topic = make_topic(3)
    produce(bootstrap, topic, 300)
    with member(bootstrap, group, topic) as consumer:
        assert numbers(poll_until(consumer, 300)) == list(range(300))
        consumer.commit_sync(30)
    produce(bootstrap, topic, 20, since=300)
    with member(bootstrap, group, topic) as consumer:
        assert numbers(poll_until(consumer, 20)) == list(range(300, 320))
        # Without a commit its last records are given back.
    with member(bootstrap, group, topic) as consumer:
        assert numbers(poll_until(consumer, 20)) == list(range(300, 320))


def test_two_members_share_one_partition(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    """Both get records of it, and no record goes to both."""
    topic = make_topic(1)
    with (
        member(bootstrap, group, topic, max_poll_records=10) as first,
        member(bootstrap, group, topic, max_poll_records=10) as second,
    ):
        found: dict[str, list[Message]] = {"first": [], "second": []}
        sent = 0
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if sent < 400:
                produce(bootstrap, topic, 20, since=sent)
                sent += 20
            for name, consumer in (("first", first), ("second", second)):
                found[name] += [each for each in consumer.poll(0.2) if each.error() is None]
            if sent == 400 and sum(map(len, found.values())) >= 400:
                break
        assert numbers(found["first"] + found["second"]) == list(range(400))
        assert found["first"]
        assert found["second"]


def test_released_records_come_again_and_rejected_ones_do_not(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Each record is acknowledged for itself, and the next delivery is counted."""
    topic = make_topic(1)
    produce(bootstrap, topic, 9)
    explicit = {"share_acknowledgement_mode": "explicit"}
    with member(bootstrap, group, topic, **explicit) as consumer:
        messages = poll_until(consumer, 9)
        assert numbers(messages) == list(range(9))
        for each in messages:
            # Accept, release, reject.
            consumer.acknowledge(each, (1, 2, 3)[int(each.value()) % 3])
        consumer.commit_sync(30)
        again = poll_until(consumer, 3)
        assert numbers(again) == [1, 4, 7]
        assert {each.delivery_count() for each in again} == {2}
        for each in again:
            consumer.acknowledge(each)
        consumer.commit_sync(30)
    produce(bootstrap, topic, 1, since=9)
    with member(bootstrap, group, topic, **explicit) as consumer:
        messages = poll_until(consumer, 1)
        assert numbers(messages) == [9]
        consumer.acknowledge(messages[0])


def test_a_record_that_is_always_released_is_given_up(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """It is delivered share.delivery.count.limit times, and then others go on behind it."""
    configure(admin, group, share_delivery_count_limit="3")
    topic = make_topic(1)
    produce(bootstrap, topic, 1)
    counts = []
    with member(bootstrap, group, topic, share_acknowledgement_mode="explicit") as consumer:
        for _ in range(3):
            (poison,) = poll_until(consumer, 1)
            counts.append(poison.delivery_count())
            consumer.acknowledge(poison, 2)
            consumer.commit_sync(30)
        produce(bootstrap, topic, 1, since=1)
        (following,) = poll_until(consumer, 1)
        consumer.acknowledge(following)
    assert counts == [1, 2, 3]
    assert following.value() == b"1"


def test_a_group_begins_with_what_comes_after_it_unless_told_otherwise(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    """share.auto.offset.reset is latest: what was there before is not for the group."""
    topic = make_topic(1)
    produce(bootstrap, topic, 5)
    with member(bootstrap, unique("share"), topic) as consumer:
        found: list[Message] = []
        sent = 5
        deadline = time.monotonic() + PATIENCE_S
        while not found and time.monotonic() < deadline:
            produce(bootstrap, topic, 1, since=sent)
            sent += 1
            found = [each for each in consumer.poll(0.5) if each.error() is None]
    assert found
    assert min(numbers(found)) >= 5


def test_aborted_records_are_not_given_out_to_a_group_that_reads_committed(
    admin: AdminClient, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """share.isolation.level=read_committed passes them by, and what is undecided is waited for."""
    configure(admin, group, share_isolation_level="read_committed")
    topic = make_topic(1)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": unique("txn"), "log_level": 0}
    )
    producer.init_transactions(30)
    for round_, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for number in range(round_ * 10, round_ * 10 + 10):
            producer.produce(topic, str(number).encode())
        if commit:
            producer.commit_transaction(30)
        else:
            producer.flush(120)
            producer.abort_transaction(30)
    with member(bootstrap, group, topic) as consumer:
        found = poll_until(consumer, 20)
        found += [each for each in consumer.poll(1.0) if each.error() is None]
    assert numbers(found) == [*range(10), *range(20, 30)]
