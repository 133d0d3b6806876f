"""aiokafka, unmodified: the client that speaks the oldest versions (Produce 8, Fetch 11)."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import OffsetAndMetadata

MakeTopic = Callable[..., str]
CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


def run(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, 240)

    return asyncio.run(bounded())


async def produce(bootstrap: str, topic: str, count: int, **settings: Any) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        futures = [
            await producer.send(
                topic,
                key=b"k%d" % i,
                value=b"v%d" % i * 20,
                headers=[("n", b"%d" % i)],
                partition=0,
                timestamp_ms=1_700_000_000_000 + 1000 * i,
            )
            for i in range(count)
        ]
        await producer.flush()
        return [(await future).offset for future in futures]


async def take(consumer: AIOKafkaConsumer, count: int) -> list[Any]:
    return [await consumer.getone() for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_were_sent_with_every_codec(
    bootstrap: str, make_topic: MakeTopic, codec: str | None
) -> None:
    topic = make_topic()

    async def work() -> tuple[list[int], list[Any]]:
        offsets = await produce(bootstrap, topic, 200, compression_type=codec, linger_ms=20)
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        consumer.assign([TopicPartition(topic, 0)])
        async with consumer:
            await consumer.seek_to_beginning()
            return offsets, await take(consumer, 200)

    offsets, records = run(work())

    assert offsets == list(range(200))
    assert [r.value for r in records] == [b"v%d" % i * 20 for i in range(200)]
    assert records[3].key == b"k3"
    assert list(records[3].headers) == [("n", b"3")]
    assert records[3].timestamp == 1_700_000_003_000


def test_idempotent_producer_is_served(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()

    assert run(produce(bootstrap, topic, 300, enable_idempotence=True)) == list(range(300))


def test_offsets_are_found_by_time(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)

    async def work() -> tuple[Any, Any, Any]:
        await produce(bootstrap, topic, 10, linger_ms=0)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            found = await consumer.offsets_for_times({partition: 1_700_000_004_500})
            beyond = await consumer.offsets_for_times({partition: 1_800_000_000_000})
            return found, beyond, await consumer.end_offsets([partition])

    found, beyond, ends = run(work())

    assert found[partition].offset == 5
    assert beyond[partition] is None
    assert ends == {partition: 10}


def test_group_resumes_at_its_committed_offset(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)

    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    async def work() -> tuple[int, int, int]:
        await produce(bootstrap, topic, 10)
        async with member() as first:
            start = (await first.getone()).offset
            await first.commit({partition: OffsetAndMetadata(7, "seven")})
        async with member() as second:
            return start, (await second.getone()).offset, await second.committed(partition)

    assert run(work()) == (0, 7, 7)


def test_partitions_are_shared_between_two_members(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=4)

    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, heartbeat_interval_ms=300
        )

    async def settled(members: list[AIOKafkaConsumer], wanted: list[int]) -> None:
        deadline_s = time.monotonic() + 120
        while [len(m.assignment()) for m in members] != wanted:
            assert time.monotonic() < deadline_s, [m.assignment() for m in members]
            for consumer in members:
                await consumer.getmany(timeout_ms=50)

    async def work() -> None:
        async with member() as first:
            await settled([first], [4])
            async with member() as second:
                await settled([first, second], [2, 2])
            await settled([first], [4])

    run(work())


def test_topics_are_created_and_deleted(bootstrap: str, group: str) -> None:
    topic = f"aio-{group}"

    async def work() -> tuple[bool, bool]:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, 2, 1)])
            there = topic in await admin.list_topics()
            await admin.delete_topics([topic])
            return there, topic in await admin.list_topics()
        finally:
            await admin.close()

    assert run(work()) == (True, False)
