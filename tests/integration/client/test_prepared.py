"""Batches that were built before they are sent, as the lake's sink sends those of its tasks."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.client import (
    ClientError,
    PreparedBatch,
    Producer,
    sync,
)
from ottla.client.producer.encoded_batch import prepared
from ottla.record.builder import BatchBuilder
from ottla.record.compression import Compression
from tests.integration.client.conftest import unique
from tests.integration.client.test_transactional import read


def batch_of(topic: str, partition: int, numbers: range, codec: int = 0) -> PreparedBatch:
    builder = BatchBuilder(codec)
    for number in numbers:
        builder.append(number, b"k%d" % number, b"v%d" % number, [("n", b"%d" % number)])
    return prepared(topic, partition, builder)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD, Compression.LZ4])
def test_prepared_batches_arrive_in_order(bootstrap, make_topic, codec: int) -> None:
    """Each partition has its batches in the order of the calls, numbered as any other batch is."""
    topic = make_topic(partitions=2)

    async def run() -> list[int]:
        async with Producer(bootstrap) as producer:
            found = []
            for start in range(0, 100, 10):
                batch = batch_of(topic, 1, range(start, start + 10), codec)
                found.append(await producer.send_prepared(batch))
            await producer.send(topic, b"after", partition=1)
            await producer.flush()
        return [delivery.base_offset for delivery in found]

    assert asyncio.run(run()) == list(range(0, 100, 10))
    expected = [b"v%d" % number for number in range(100)] + [b"after"]
    assert asyncio.run(read(bootstrap, topic, 2)) == [[], expected]


def test_prepared_batches_belong_to_the_transaction(bootstrap, make_topic) -> None:
    """Those of an aborted transaction are not visible; the same batches may be sent again."""
    topic = make_topic()
    batches = [batch_of(topic, 0, range(n, n + 5)) for n in (0, 5)]
    with sync.Producer(bootstrap, transactional_id=unique("id")) as producer:
        producer.init_transactions()
        with pytest.raises(ClientError, match="call begin_transaction first"):
            producer.send_prepared(batches[0])
        for commits in (False, True):
            producer.begin_transaction()
            for batch in batches:
                producer.send_prepared(batch)
            producer.flush()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert asyncio.run(read(bootstrap, topic)) == [[b"v%d" % number for number in range(10)]]


def test_prepared_batch_that_the_topic_finds_too_large_goes_in_parts(bootstrap, make_topic) -> None:
    """As a batch does that the producer built itself."""
    topic = make_topic(max_message_bytes="1000")

    async def run() -> None:
        async with Producer(bootstrap, transactional_id=unique("id")) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_prepared(batch_of(topic, 0, range(100)))

    asyncio.run(run())
    assert asyncio.run(read(bootstrap, topic)) == [[b"v%d" % number for number in range(100)]]


@pytest.mark.parametrize("place", [0, 20, 61, -1])
def test_damaged_batches_are_refused_before_they_are_sent(bootstrap, make_topic, place) -> None:
    """A producer computes the checksum anew: what was damaged on the way would seem whole."""
    topic = make_topic()
    whole = batch_of(topic, 0, range(5))
    content = bytearray(whole.content)
    content[place] ^= 1
    cut = whole._replace(content=whole.content[:-1])

    async def run(batch: PreparedBatch) -> None:
        async with Producer(bootstrap, linger_ms=0) as producer:
            await producer.send_prepared(batch)

    if place > 20 or place < 0:
        with pytest.raises(ClientError, match="is damaged; prepare it again") as error:
            asyncio.run(run(whole._replace(content=bytes(content))))
        assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    for bad in (cut, whole._replace(content=b""), whole._replace(record_count=4)):
        with pytest.raises(ClientError, match="is damaged"):
            asyncio.run(run(bad))
