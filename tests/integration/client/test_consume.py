"""The consumer against real brokers, without groups."""

import asyncio
import re

import confluent_kafka
import pytest

from ottla.client import (
    ClientError,
    Consumer,
    ConsumerOptions,
    ConsumerRecord,
    OffsetOutOfRange,
    Producer,
    TopicPartition,
    UnknownTopic,
    sync,
)
from ottla.record.header import read_header


def fill(bootstrap: str, topic: str, count: int, **options: int) -> None:
    """`count` records in partition 0: value n at time 1000 + n, in batches of a few."""
    with sync.Producer(bootstrap, **options) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1000 + number)


async def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """The next `count` records, one by one."""
    found: list[ConsumerRecord] = []
    async with asyncio.timeout(120):
        async for record in consumer:
            found.append(record)
            if len(found) == count:
                break
    return found


def test_position_is_one_integer_and_rewinding_is_free(bootstrap, make_topic) -> None:
    """Seek anywhere, within a batch or back, and reading goes on from exactly there (P11)."""
    topic = make_topic()
    fill(bootstrap, topic, 100, batch_size=300)
    partition = TopicPartition(topic, 0)

    async def run() -> None:
        async with Consumer(bootstrap) as consumer:
            await consumer.assign([partition])
            assert [r.offset for r in await take(consumer, 3)] == [0, 1, 2]
            assert await consumer.position(partition) == 3
            consumer.seek(partition, 57)
            assert [r.value for r in await take(consumer, 2)] == [b"57", b"58"]
            consumer.seek(partition, 5)
            assert [r.value for r in await take(consumer, 1)] == [b"5"]
            assert consumer.high_watermark(partition) == 100

    asyncio.run(run())


def test_breaking_off_and_polling_skips_nothing(bootstrap, make_topic) -> None:
    """What was decoded and not handed out comes with the next poll."""
    topic = make_topic()
    fill(bootstrap, topic, 50)

    async def run() -> list[int]:
        async with Consumer(bootstrap) as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            offsets = [record.offset for record in await take(consumer, 7)]
            while len(offsets) < 50:
                for batch in (await consumer.poll(max_records=10)).by_partition:
                    assert len(batch.records) <= 10
                    offsets += [record.offset for record in batch.records]
            return offsets

    assert asyncio.run(run()) == list(range(50))


def test_rewinding_by_time_finds_the_first_record_as_late(bootstrap, make_topic) -> None:
    """A time between two records means the later one; a time after all means the end."""
    topic = make_topic()
    fill(bootstrap, topic, 20)
    partition = TopicPartition(topic, 0)

    async def run() -> None:
        async with Consumer(bootstrap) as consumer:
            await consumer.assign([partition])
            consumer.seek_to_time(1007)
            assert [r.offset for r in await take(consumer, 1)] == [7]
            consumer.seek_to_time(9999)
            assert await consumer.position(partition) == 20
            consumer.seek_to_beginning()
            assert await consumer.position(partition) == 0
            consumer.seek_to_end()
            assert await consumer.position(partition) == 20
            told = await consumer.offsets_for_times({partition: 1012})
            assert told[partition][:2] == (12, 1012)
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 20}

    asyncio.run(run())


def test_a_long_poll_is_answered_as_soon_as_there_is_a_record(bootstrap, make_topic) -> None:
    """The consumer waits at the broker, not between questions (P10)."""
    topic = make_topic()

    async def run() -> float:
        options = ConsumerOptions(fetch_max_wait_ms=100_000)
        async with Consumer(bootstrap, **options) as consumer, Producer(bootstrap) as producer:
            await consumer.assign([TopicPartition(topic, 0)])
            assert await consumer.poll(0.2) == []
            await producer.send_and_wait(topic, b"now")
            began_s = asyncio.get_running_loop().time()
            (record,) = await consumer.poll(90)
            assert record.value == b"now"
            return asyncio.get_running_loop().time() - began_s

    assert asyncio.run(run()) < 60


def test_paused_partitions_keep_their_place_and_give_nothing(bootstrap, make_topic) -> None:
    """Others go on meanwhile; after `resume` no record is missing (P10)."""
    topic = make_topic(partitions=2)
    with sync.Producer(bootstrap) as producer:
        for number in range(200):
            producer.send(topic, b"%d" % number, partition=number % 2)

    async def run() -> None:
        async with Consumer(bootstrap) as consumer:
            zero, one = (TopicPartition(topic, number) for number in range(2))
            await consumer.assign([zero, one])
            (first,) = await take(consumer, 1)
            other = one if first.partition == 0 else zero
            paused = TopicPartition(topic, first.partition)
            consumer.pause([paused])
            rest = await take(consumer, 100)
            assert {record.partition for record in rest} == {other.partition}
            assert await consumer.poll(0.1) == []
            consumer.resume([paused])
            assert [record.offset for record in await take(consumer, 99)] == list(range(1, 100))

    asyncio.run(run())


def test_raw_batches_are_the_bytes_of_the_log(bootstrap, make_topic) -> None:
    """`fetch_batches` gives whole batches, headers readable, offsets in place (P2)."""
    topic = make_topic()
    fill(bootstrap, topic, 30)

    async def run() -> tuple[int, int, int]:
        async with Consumer(bootstrap) as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            async for raw in consumer.fetch_batches():
                header = read_header(raw.batches)
                assert (raw.topic, raw.partition, header.base_offset) == (topic, 0, 0)
                return header.last_offset, raw.high_watermark, raw.log_start_offset
        raise AssertionError

    last, high_watermark, log_start = asyncio.run(run())
    assert last >= 0
    assert (high_watermark, log_start) == (30, 0)


def test_an_offset_out_of_range_is_an_error_where_no_rule_says_otherwise(
    bootstrap, make_topic
) -> None:
    """auto_offset_reset none: the error says where the log starts."""
    topic = make_topic()
    fill(bootstrap, topic, 5)

    async def run(reset: str) -> int:
        async with Consumer(bootstrap, auto_offset_reset=reset) as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 1_000)
            return (await take(consumer, 1))[0].offset

    assert asyncio.run(run("earliest")) == 0
    with pytest.raises(OffsetOutOfRange, match="offset 1000 of"):
        asyncio.run(run("none"))


def test_an_unknown_topic_names_those_spelled_alike(bootstrap, make_topic) -> None:
    """A slip of the finger is answered with what was meant."""
    topic = make_topic()

    async def run() -> None:
        async with Consumer(bootstrap) as consumer:
            await consumer.assign([TopicPartition(topic + "x", 0)])

    with pytest.raises(UnknownTopic, match=re.escape(f"did you mean {topic}")):
        asyncio.run(run())


def test_what_is_not_assigned_cannot_be_sought(bootstrap, make_topic) -> None:
    """The error says what the consumer does read."""
    topic = make_topic()

    async def run() -> None:
        async with Consumer(bootstrap) as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 1), 0)

    with pytest.raises(ClientError, match="is not assigned to this consumer"):
        asyncio.run(run())


def test_read_committed_leaves_aborted_records_out(kafka_node) -> None:
    """KIP-98: a transaction's records show once it commits, those of an aborted one never."""
    bootstrap = kafka_node.bootstrap
    topic = f"transactions-{kafka_node.port}"
    with sync.Admin(bootstrap) as admin:
        admin.topics.create(topic, partitions=1)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(90)
    for value, commit in ((b"good", True), (b"bad", False), (b"fine", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(90)
        producer.commit_transaction(90) if commit else producer.abort_transaction(90)

    def read(*, committed: bool) -> tuple[list[bytes | None], int]:
        with sync.Consumer(
            bootstrap, isolation_level="read_committed" if committed else "read_uncommitted"
        ) as consumer:
            consumer.assign([(topic, 0)])
            found: list[bytes | None] = []
            while consumer.position(TopicPartition(topic, 0)) < 6:
                found += [
                    record.value
                    for batch in consumer.poll().by_partition
                    for record in batch.records
                ]
            return found, consumer.position(TopicPartition(topic, 0))

    assert read(committed=True) == ([b"good", b"fine"], 6)
    assert read(committed=False) == ([b"good", b"bad", b"fine"], 6)
