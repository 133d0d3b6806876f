"""Retries that wait, and records of several partitions that become visible together."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import pytest
from rig.nodes import Node

from ottla.base.errors import ErrorCode
from ottla.client import Producer, ProducerOptions, TopicPartition, sync
from tests.integration.client.scripted import ScriptedBroker


@pytest.mark.parametrize("in_flight", [1, 5])
def test_a_refused_batch_waits_before_it_goes_again(in_flight: int) -> None:
    """P8: `retry.backoff.ms` lies between two attempts, and the order holds, 1 or 5 in flight."""
    options = ProducerOptions(
        batch_size=20,
        linger_ms=0,
        max_in_flight_requests_per_connection=in_flight,
        enable_idempotence=in_flight > 1,
        retry_backoff_ms=500,
        retry_backoff_max_ms=500,
    )

    async def run() -> tuple[ScriptedBroker, float]:
        script = deque([ErrorCode.NOT_ENOUGH_REPLICAS])
        async with ScriptedBroker(script) as broker:
            began_s = time.monotonic()
            async with Producer(broker.bootstrap, **options) as producer:
                for number in range(6):
                    await producer.send("t", b"%010d" % number)
            return broker, time.monotonic() - began_s

    broker, took_s = asyncio.run(run())
    assert broker.log == [b"%010d" % number for number in range(6)]
    assert took_s > 0.35, "the pause is drawn from around half a second"


def test_records_of_several_partitions_are_seen_together_or_not_at_all(
    node: Node, make_topic: Callable[..., str]
) -> None:
    """P9: one transaction over two partitions: committed both are read, aborted neither."""
    topic = make_topic(partitions=2)
    names = [TopicPartition(topic, index) for index in (0, 1)]
    with sync.Producer(node.bootstrap, transactional_id=f"tx-{topic}") as producer:
        producer.init_transactions()
        for outcome in ("aborted", "committed"):
            producer.begin_transaction()
            for index in (0, 1):
                producer.send(topic, f"{outcome} {index}".encode(), partition=index)
            if outcome == "aborted":
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with sync.Consumer(node.bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(names)
        consumer.seek_to_beginning()
        found: list[bytes | None] = []
        deadline_s = time.monotonic() + 120
        while len(found) < 2:
            assert time.monotonic() < deadline_s
            for records in consumer.poll(1).by_partition:
                found += [record.value for record in records.records]
    assert sorted(value or b"" for value in found) == [b"committed 0", b"committed 1"]
