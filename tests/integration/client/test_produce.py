"""The producer against real brokers."""

import asyncio
from itertools import pairwise
from time import time

import confluent_kafka
import pytest
from rig.consumer import read as read_by_librdkafka

from ottla.base.errors import ErrorCode
from ottla.client import (
    ClientError,
    Consumer,
    Delivery,
    DeliveryFailed,
    Producer,
    ProducerOptions,
    Records,
    TopicPartition,
)

# One time for all, so that records have one size; not long ago, or retention would take them.
NOW_MS = int(time() * 1000)


async def read(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Records]:
    """The topic's first `count` records, batch by batch."""
    found: list[Records] = []
    async with Consumer(bootstrap) as consumer:
        await consumer.assign(TopicPartition(topic, number) for number in range(partitions))
        async with asyncio.timeout(120):
            while sum(len(batch.records) for batch in found) < count:
                found += (await consumer.poll()).by_partition
    return found


def values(found: list[Records]) -> list[bytes | None]:
    return [record.value for batch in found for record in batch.records]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_come_back_as_they_were_sent(bootstrap, make_topic, codec) -> None:
    """Keys, values, headers, nulls and times survive each codec, and other clients read them."""
    topic = make_topic()

    async def run() -> list[Records]:
        options = ProducerOptions(compression_type=codec, linger_ms=60_000)
        async with Producer(bootstrap, **options) as producer:
            await producer.send(topic, b"a" * 1000, b"k", timestamp_ms=1_000)
            await producer.send(topic, None, "text", headers=[("h", b"1"), ("h", None)])
            await producer.send(topic, "", b"")
        return await read(bootstrap, topic, 3)

    (batch,) = asyncio.run(run())
    first, second, third = batch.records
    assert (first.offset, first.timestamp, first.key, first.value) == (0, 1_000, b"k", b"a" * 1000)
    assert (second.key, second.value) == (b"text", None)
    assert second.headers == [("h", b"1"), ("h", None)]
    assert (third.key, third.value, third.headers) == (b"", b"", [])
    other = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    other.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    (message,) = read_by_librdkafka(other, 1)
    assert (message.key(), message.value()) == (b"k", b"a" * 1000)
    other.close()


@pytest.mark.parametrize(("acks", "offset"), [(0, -1), (1, 0), ("all", 0)])
def test_acks_decide_what_the_delivery_can_tell(bootstrap, make_topic, acks, offset) -> None:
    """Without acknowledgement nobody tells an offset, yet the record is there (P8)."""
    topic = make_topic()

    async def run() -> tuple[Delivery, list[Records]]:
        async with Producer(bootstrap, acks=acks) as producer:
            delivery = await producer.send_and_wait(topic, b"v")
        return delivery, await read(bootstrap, topic, 1)

    delivery, found = asyncio.run(run())
    assert delivery.base_offset == offset
    assert values(found) == [b"v"]


def test_delivery_is_told_once_per_batch(bootstrap, make_topic) -> None:
    """A thousand records in few batches: the callback sees each batch once, with offsets (P7)."""
    topic = make_topic()
    told: list[Delivery] = []

    async def run() -> None:
        options = ProducerOptions(linger_ms=60_000, batch_size=16_384)
        async with Producer(bootstrap, **options, on_delivery=told.append) as producer:
            for number in range(1000):
                await producer.send(topic, b"%0100d" % number, timestamp_ms=NOW_MS)

    asyncio.run(run())
    assert len(told) == 7
    assert sum(delivery.record_count for delivery in told) == 1000
    assert [delivery.base_offset for delivery in told] == [0, 148, 296, 444, 592, 740, 888]


def test_fire_and_forget_still_learns_of_failures_from_flush(bootstrap, make_topic) -> None:
    """What nobody waited for is raised by `flush`, with the broker's code and a remedy (P7)."""
    topic = make_topic(max_message_bytes="2000")

    async def run() -> None:
        async with Producer(bootstrap) as producer:
            await producer.send(topic, b"x" * 5000)
            await producer.flush()

    with pytest.raises(DeliveryFailed, match=r"max\.message\.bytes") as caught:
        asyncio.run(run())
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_is_too_large_goes_in_parts(bootstrap, make_topic) -> None:
    """Records that fit one by one do not fail because they were sent together, nor reordered."""
    topic = make_topic(max_message_bytes="3000")

    async def run() -> tuple[list[Delivery], list[Records]]:
        told: list[Delivery] = []
        options = ProducerOptions(linger_ms=60_000)
        async with Producer(bootstrap, **options, on_delivery=told.append) as producer:
            for number in range(40):
                await producer.send(topic, b"%0500d" % number)
        return told, await read(bootstrap, topic, 40)

    told, found = asyncio.run(run())
    assert [(delivery.record_count, delivery.error) for delivery in told] == [(40, None)]
    assert values(found) == [b"%0500d" % number for number in range(40)]


def test_keys_go_where_other_clients_put_them(bootstrap, make_topic) -> None:
    """librdkafka's `murmur2_random` partitioner and ours agree on every key (P6)."""
    topic = make_topic(partitions=7)
    keys = [b"key-%d" % number for number in range(50)]
    placed: dict[bytes, int] = {}
    theirs = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"}
    )
    for key in keys:
        theirs.produce(
            topic, key=key, on_delivery=lambda _, m: placed.update({m.key(): m.partition()})
        )
    assert theirs.flush(120) == 0

    async def run() -> dict[bytes, int]:
        async with Producer(bootstrap) as producer:
            return {key: (await producer.send(topic, b"", key)).partition for key in keys}

    assert asyncio.run(run()) == placed


def test_records_without_a_key_fill_one_partition_then_another(bootstrap, make_topic) -> None:
    """Sticky: a batch's worth stays together, and all partitions get their share (P6)."""
    topic = make_topic(partitions=3)

    async def run() -> list[Delivery]:
        options = ProducerOptions(batch_size=4096, linger_ms=60_000)
        async with Producer(bootstrap, **options) as producer:
            return [
                await producer.send(topic, b"x" * 100, timestamp_ms=NOW_MS) for _ in range(1000)
            ]

    deliveries = list(dict.fromkeys(asyncio.run(run())))
    assert all(d.record_count == 37 for d in deliveries[:-1])
    assert {d.partition for d in deliveries} == {0, 1, 2}
    assert all(one.partition != other.partition for one, other in pairwise(deliveries))


def test_send_batch_places_and_orders_records_as_send_does(bootstrap, make_topic) -> None:
    """Lists with keys: each key's records in one partition, in their order."""
    topic = make_topic(partitions=4)
    keys = [b"k%d" % (number % 10) for number in range(2000)]

    async def run() -> list[Records]:
        async with Producer(bootstrap) as producer:
            await producer.send_batch(topic, [b"%d" % n for n in range(2000)], keys)
        return await read(bootstrap, topic, 2000, partitions=4)

    seen: dict[bytes, list[int]] = {}
    for batch in asyncio.run(run()):
        for record in batch.records:
            seen.setdefault(record.key or b"", []).append(int(record.value or b""))
    assert seen == {b"k%d" % key: list(range(key, 2000, 10)) for key in range(10)}


def test_arrow_columns_are_sent_as_they_are(bootstrap, make_topic) -> None:
    """A chunked column of binary, one of text, with nulls."""
    arrow = pytest.importorskip("pyarrow")
    topic = make_topic()
    column = arrow.chunked_array([[b"a", None], [b"c"]], arrow.binary())
    keys = arrow.array(["x", "y", None], arrow.string())

    async def run() -> list[Records]:
        async with Producer(bootstrap) as producer:
            await producer.send_batch(topic, column, keys)
        return await read(bootstrap, topic, 3)

    (batch,) = asyncio.run(run())
    assert [(r.key, r.value) for r in batch.records] == [(b"x", b"a"), (b"y", None), (None, b"c")]


def test_memory_is_bounded_and_the_sender_waits(bootstrap, make_topic) -> None:
    """Unacknowledged records never take more than buffer_memory; waiting loses nothing (P7)."""
    topic = make_topic()
    options = ProducerOptions(batch_size=8_192, buffer_memory=65_536)

    async def run() -> tuple[int, list[Records]]:
        most = 0
        async with Producer(bootstrap, **options) as producer:
            for number in range(5000):
                await producer.send(topic, b"%0100d" % number)
                most = max(most, producer._accumulator.used_bytes)
        return most, await read(bootstrap, topic, 5000)

    most, found = asyncio.run(run())
    assert 0 < most <= 65_536
    assert values(found) == [b"%0100d" % number for number in range(5000)]


def test_a_partition_that_does_not_exist_is_named(bootstrap, make_topic) -> None:
    """The error tells which partitions there are."""
    topic = make_topic(partitions=2)

    async def run() -> None:
        async with Producer(bootstrap) as producer:
            await producer.send(topic, b"", partition=2)

    with pytest.raises(ClientError, match="has partitions 0 to 1, not 2"):
        asyncio.run(run())


def test_tasks_that_wait_share_their_batches(bootstrap, make_topic) -> None:
    """A hundred tasks that each wait for one record send far fewer batches (P3)."""
    topic = make_topic()

    async def run() -> list[Delivery]:
        async with Producer(bootstrap) as producer:
            await producer.send_and_wait(topic, b"first")
            return await asyncio.gather(
                *(producer.send_and_wait(topic, b"%d" % number) for number in range(100))
            )

    assert len(set(asyncio.run(run()))) == 1
