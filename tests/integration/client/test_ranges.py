"""Ranges of raw batches over a blocking socket: what a task of an offline load reads (P14)."""

import logging
import re
import socket
from collections.abc import Iterator
from time import monotonic, time
from typing import Any

import pytest
from rig.broker import ottla

from ottla.client import OffsetOutOfRange, ProducerOptions, TopicPartition, UnknownTopic, sync
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.client.ranges import Fetched, RangeClient
from ottla.metadata.quota_entity import QuotaEntity
from ottla.record.reader import batches, records


def fill(bootstrap: str, topic: str, count: int) -> None:
    """Batches of ten records in partition 0."""
    options = ProducerOptions(batch_size=61 + 10 * 109, linger_ms=60_000)
    now_ms = int(time() * 1000)
    with sync.Producer(bootstrap, **options) as producer:
        for number in range(count):
            producer.send(topic, b"%0100d" % number, partition=0, timestamp_ms=now_ms)


def fetch_range(bootstrap: str, *where: Any, **options: int) -> Iterator[Fetched]:
    """A range, read by a client of its own as a task of a load does."""
    with RangeClient(bootstrap) as client:
        yield from client.fetch_range(*where, **options)


def numbers(found: list[Fetched]) -> list[int]:
    return [
        int(record.value or b"")
        for part in found
        for position, header in batches(part.batches)
        for record in records(part.batches, position, header)
    ]


def test_a_range_is_covered_by_whole_batches_in_order(bootstrap, make_topic) -> None:
    """From the batch that holds the start to the one that holds the end, fetch by fetch."""
    topic = make_topic()
    fill(bootstrap, topic, 1000)
    found = list(fetch_range(bootstrap, topic, 0, 15, 85, fetch_bytes=2_000))
    assert len(found) > 1
    assert numbers(found)[:6] == [10, 11, 12, 13, 14, 15]
    covered = numbers(found)
    assert covered == list(range(10, 10 + len(covered)))
    assert found[-1].next_offset >= 85
    assert {part.high_watermark for part in found} == {1000}


def test_offsets_and_topics_are_told(bootstrap, make_topic) -> None:
    """Metadata and list offsets, without a loop."""
    topic = make_topic(partitions=2)
    fill(bootstrap, topic, 30)
    with RangeClient(bootstrap) as client:
        assert [entry.partition for entry in client.topic(topic).partitions] == [0, 1]
        assert {p: o.offset for p, o in client.list_offsets(topic, LATEST).items()} == {0: 30, 1: 0}
        assert client.list_offsets(topic, EARLIEST, [0])[0].offset == 0
        assert topic in client.topic_names()
        with pytest.raises(UnknownTopic, match="did you mean"):
            client.topic(topic + "x")


def test_a_start_that_is_gone_is_an_error_that_says_where_the_log_starts(
    bootstrap, make_topic
) -> None:
    """A load must not begin somewhere else in silence."""
    topic = make_topic()
    fill(bootstrap, topic, 100)
    with sync.Admin(bootstrap) as admin:
        admin.logs.delete_records({TopicPartition(topic, 0): 50})
    with pytest.raises(OffsetOutOfRange, match="now starts at 50"):
        list(fetch_range(bootstrap, topic, 0, 10, 100))


def test_an_empty_range_asks_nothing(bootstrap) -> None:
    """Not even for the topic."""
    assert list(fetch_range(bootstrap, "no-such-topic", 0, 5, 5)) == []


def test_a_range_outlives_a_restart_of_the_broker(tmp_path) -> None:
    """Goes on after the batch last yielded: nothing twice, nothing left out (P14)."""
    with ottla(folder=tmp_path) as node:
        fill(node.bootstrap, "t", 500)
        reading = fetch_range(node.bootstrap, "t", 0, 0, 500, fetch_bytes=2_000)
        found = [next(reading), next(reading)]
    with ottla(folder=tmp_path, port=node.port):
        found += list(reading)
    assert numbers(found) == list(range(500))


class Said(Exception):
    """What was logged, in place of waiting for a minute."""


class _Raising(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise Said(record.getMessage())


def test_a_silent_broker_is_said_while_it_is_tried_again() -> None:
    """It takes connections and answers nothing: for half a minute each, and a minute in all."""
    logger, handler = logging.getLogger("ottla.client.ranges"), _Raising()
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            where = f"127.0.0.1:{silent.getsockname()[1]}"
            with RangeClient(where) as client, pytest.raises(Said, match=where) as said:
                client.topic("flights")
    finally:
        logger.removeHandler(handler)
    assert re.search(r"; it is tried again for up to 5\d s$", str(said.value))


def test_a_range_is_read_on_when_a_quota_is_used_up(ottla_node) -> None:
    """The broker answers such a fetch with nothing but a time to wait.

    Kafka does the same; but it lets a client use ten seconds' worth first, and ten go by then.
    """
    node, topic = ottla_node, "read-under-a-quota"
    with sync.Admin(node.bootstrap) as admin:
        admin.topics.create(topic, partitions=1)
    fill(node.bootstrap, topic, 3_000)
    entity = QuotaEntity(client_id=f"slow-{topic}")
    with sync.Admin(node.bootstrap) as admin:
        admin.quotas.alter(entity, {"consumer_byte_rate": 200_000.0})
        began_s = monotonic()
        with RangeClient(node.bootstrap, client_id=str(entity.client_id)) as client:
            found = list(client.fetch_range(topic, 0, 0, 3_000, fetch_bytes=20_000))
            taken_s = monotonic() - began_s
            assert batches_of(client.fetch_once(topic, 0, 2_990)) > 0
        admin.quotas.alter(entity, {"consumer_byte_rate": None})
    assert numbers(found) == list(range(3_000))
    assert taken_s > 0.3


def batches_of(buffer: bytes) -> int:
    return len(list(batches(buffer)))
