"""Tests wait for groups without sleep: the broker knows what its groups have done.

A wait that returned too early would find less than it asserts.
"""

import asyncio
import re

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import ottla.testing
from ottla.client import ConfigResourceType
from ottla.client.sync import Admin
from tests.integration.testing import consuming
from tests.integration.testing.consuming import Service

LIBRARIES = [
    consuming.librdkafka,
    consuming.kip_848,
    consuming.kafka_python,
    consuming.aiokafka_,
    consuming.ottla,
]
_PATIENCE_S = 120


def produce(broker: ottla.testing.Broker, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, str(number).encode())
    assert producer.flush(_PATIENCE_S) == 0


def committed(broker: ottla.testing.Broker, group: str, topic: str) -> int:
    with Admin(broker.bootstrap) as admin:
        offsets = admin.groups.offsets(group)
    return sum(entry.offset for name, entry in offsets.items() if name.topic == topic)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
def test_group_of_each_library_is_awaited(
    ottla_broker: ottla.testing.Broker, library: Service
) -> None:
    """When the waits return, all partitions have a member, and every record is committed."""
    broker = ottla_broker
    broker.create_topic("orders", partitions=6)
    with library(broker.bootstrap, "audit", "orders"):
        broker.until_assigned("audit", partitions=6, timeout=_PATIENCE_S)
        produce(broker, "orders", 50)
        broker.until_consumed("audit", "orders", timeout=_PATIENCE_S)
        assert committed(broker, "audit", "orders") == 50
        produce(broker, "orders", 10)
        broker.until_idle(timeout=_PATIENCE_S)
        assert committed(broker, "audit", "orders") == 60
    (first, *_) = broker.rebalances("audit")
    assert (first.ending, first.causes[0].kind) == ("stable", "joined")


def test_second_member_is_awaited(ottla_broker: ottla.testing.Broker) -> None:
    """With `members`, the wait goes on until the second member has got its share."""
    broker = ottla_broker
    broker.create_topic("orders", partitions=6)
    with consuming.librdkafka(broker.bootstrap, "audit", "orders"):
        broker.until_assigned("audit", partitions=6, members=1, timeout=_PATIENCE_S)
        with consuming.librdkafka(broker.bootstrap, "audit", "orders"):
            broker.until_assigned("audit", partitions=6, members=2, timeout=_PATIENCE_S)
            with Admin(broker.bootstrap) as admin:
                members = admin.groups.describe("audit").members
            assert sorted(len(each.partitions) for each in members) == [3, 3]


def test_share_group_is_awaited_until_all_is_acknowledged(
    ottla_broker: ottla.testing.Broker,
) -> None:
    broker = ottla_broker
    broker.create_topic("jobs", partitions=2)
    with Admin(broker.bootstrap) as admin:
        earliest = {"share.auto.offset.reset": "earliest"}
        admin.configs.alter(ConfigResourceType.GROUP, "workers", earliest)
    produce(broker, "jobs", 30)
    with consuming.share_consumer(broker.bootstrap, "workers", "jobs"):
        broker.until_assigned("workers", partitions=2, timeout=_PATIENCE_S)
        broker.until_consumed("workers", "jobs", timeout=_PATIENCE_S)
        with Admin(broker.bootstrap) as admin:
            offsets = admin.share_groups.offsets("workers")
        assert sum(entry.start_offset or 0 for entry in offsets.values()) == 30


def test_markers_of_transactions_need_not_be_consumed(ottla_broker: ottla.testing.Broker) -> None:
    """Aborted records neither; but while a transaction is open, nothing is idle."""
    broker = ottla_broker
    broker.create_topic("orders")
    with consuming.librdkafka(broker.bootstrap, "audit", "orders"):
        broker.until_assigned("audit", partitions=1, timeout=_PATIENCE_S)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
        producer.init_transactions(_PATIENCE_S)
        for ends in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            producer.produce("orders", b"x")
            producer.flush(_PATIENCE_S)
            with pytest.raises(TimeoutError, match="a transaction is open in orders-0"):
                broker.until_idle(timeout=0)
            ends(_PATIENCE_S)
            broker.until_idle(timeout=_PATIENCE_S)
    assert committed(broker, "audit", "orders") == 1


def test_failed_wait_tells_the_story_of_the_group(ottla_broker: ottla.testing.Broker) -> None:
    """Members, causes of rebalances, who is late, committed and end offsets."""
    broker = ottla_broker
    broker.create_topic("orders", partitions=2)
    produce(broker, "orders", 1)
    with pytest.raises(TimeoutError, match="there is no group 'audit' yet: no member has joined"):
        broker.until_assigned("audit", partitions=2, timeout=0)
    late = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "audit",
            "client.id": "late",
            "partition.assignment.strategy": "range",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    late.subscribe(["orders"], on_assign=lambda _consumer, _partitions: None)
    while not late.assignment():
        late.poll(0.05)
    late.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    with pytest.raises(TimeoutError, match=r"(?s)consumed orders-\d to the end.*end offset 1"):
        broker.until_consumed("audit", "orders", timeout=0)
    # It is not polled any more, so it cannot revoke its partitions for the second member.
    with consuming.librdkafka(broker.bootstrap, "audit", "orders"):
        while len(broker.rebalances("audit")) < 2:
            pass
        with pytest.raises(TimeoutError) as failed:
            broker.until_assigned("audit", partitions=2, members=2, timeout=0)
        late.close()
    text = str(failed.value)
    assert text.startswith("after 0 s: group 'audit' ")
    assert re.search(r"\n  late-\S+ at 127\.0\.0\.1: .*; it has not joined again\n", text), text
    assert re.search(r"\n  rebalance \S+  classic protocol, epoch -1: lasts\n", text), text
    assert "because     " in text
    with pytest.raises(TimeoutError, match="there is no topic 'order' yet"):
        broker.until_consumed("audit", "order", timeout=0)


async def _await_with_aiokafka(broker: ottla.testing.Broker) -> None:
    with consuming.aiokafka_(broker.bootstrap, "audit", "orders"):
        await asyncio.to_thread(broker.until_assigned, "audit", 1, timeout=_PATIENCE_S)


def test_async_tests_wait_in_a_thread(ottla_broker: ottla.testing.Broker) -> None:
    """The loop of the test goes on meanwhile."""
    ottla_broker.create_topic("orders")
    asyncio.run(_await_with_aiokafka(ottla_broker))
