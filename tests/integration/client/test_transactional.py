"""Transactions of the own client, as brokers of today and clients of old have them."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.client import (
    ClientError,
    CommitFailed,
    Consumer,
    ConsumerOptions,
    DeliveryFailed,
    GroupMetadata,
    Producer,
    ProducerFenced,
    ProducerOptions,
    TopicPartition,
    TransactionFailed,
    sync,
)
from tests.integration.client.conftest import eventually, unique

OPTIONS = ProducerOptions(retry_backoff_ms=20, retry_backoff_max_ms=200)


# Each transaction with an epoch of its own, and as clients of old have them.
both_versions = pytest.mark.parametrize("version", [2, 1])


async def read(
    bootstrap: str, topic: str, partitions: int = 1, *, committed: bool = True
) -> list[list[bytes | None]]:
    """The values of each partition, once no transaction is open; for such a reader."""
    found: list[list[bytes | None]] = [[] for _ in range(partitions)]
    names = [TopicPartition(topic, index) for index in range(partitions)]
    options = ConsumerOptions(isolation_level="read_committed" if committed else "read_uncommitted")
    async with Consumer(bootstrap, **options) as consumer, asyncio.timeout(120):
        await _ended(bootstrap, consumer, names)
        ends = await consumer.end_offsets(names)
        await consumer.assign(names)
        left = set(names)
        while left:
            for batch in (await consumer.poll(0.1)).by_partition:
                found[batch.partition] += [record.value for record in batch.records]
            left = {name for name in left if await consumer.position(name) < ends[name]}
    return found


async def _ended(bootstrap: str, consumer: Consumer, names: list[TopicPartition]) -> None:
    """Wait until every marker is written: where the log ends, it ends for all."""
    async with Consumer(bootstrap) as other:
        while await consumer.end_offsets(names) != await other.end_offsets(names):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@both_versions
def test_all_of_a_transaction_becomes_visible_or_nothing(bootstrap, make_topic, version) -> None:
    """Over two partitions, every third transaction aborted; who reads uncommitted sees them all."""
    topic = make_topic(partitions=2)

    async def run() -> None:
        async with Producer(
            bootstrap, transactional_id=unique("id"), **OPTIONS, transaction_version_max=version
        ) as producer:
            await producer.init_transactions()
            for number in range(6):
                await producer.begin_transaction()
                deliveries = [
                    await producer.send(topic, b"%d" % number, partition=index)
                    for index in range(2)
                ]
                if number % 3 == 2:
                    # Sent, and acknowledged, and yet never visible.
                    await producer.flush()
                    assert all(delivery.base_offset >= 0 for delivery in deliveries)
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    asyncio.run(run())
    kept = [b"0", b"1", b"3", b"4"]
    assert asyncio.run(read(bootstrap, topic, 2)) == [kept, kept]
    every = [b"%d" % number for number in range(6)]
    assert asyncio.run(read(bootstrap, topic, 2, committed=False)) == [every, every]


@both_versions
def test_records_are_passed_on_exactly_once(bootstrap, make_topic, group, version) -> None:
    """Offsets are committed with what was made of them: after an abort both are done again."""
    source, target = make_topic(), make_topic()

    async def run() -> tuple[int, int]:
        async with Producer(
            bootstrap, transactional_id=unique("id"), **OPTIONS, transaction_version_max=version
        ) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_batch(source, [b"%d" % n for n in range(10)])
            for turn in range(2):
                options = ConsumerOptions(
                    group_id=group, isolation_level="read_committed", enable_auto_commit=False
                )
                async with Consumer(bootstrap, **options) as consumer:
                    consumer.subscribe(source)
                    await _pass_on(consumer, producer, target, aborts=turn == 0)
                    committed = await consumer.committed(source, 0)
                    if turn == 0:
                        assert committed is None
            return committed

    async def _pass_on(
        consumer: Consumer, producer: Producer, target: str, *, aborts: bool
    ) -> None:
        seen = 0
        while seen < 10:
            for batch in (await consumer.poll(1)).by_partition:
                seen += len(batch.records)
                await producer.begin_transaction()
                values = [record.value for record in batch.records]
                await producer.send_batch(target, values)
                offset = batch.records[-1].offset + 1
                where = TopicPartition(batch.topic, batch.partition)
                await producer.send_offsets_to_transaction(
                    {where: offset}, consumer.group_metadata()
                )
                if aborts:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    assert asyncio.run(run()) == 10
    assert asyncio.run(read(bootstrap, target)) == [[b"%d" % number for number in range(10)]]


@both_versions
def test_newest_producer_with_an_id_fences_the_others(bootstrap, make_topic, version) -> None:
    """The older can do nothing more, and is told why; what it had open is aborted."""
    topic, name = make_topic(), unique("id")

    async def run() -> list[ErrorCode]:
        old = Producer(bootstrap, transactional_id=name, **OPTIONS, transaction_version_max=version)
        await old.init_transactions()
        await old.begin_transaction()
        await old.send(topic, b"old")
        await old.flush()
        async with Producer(
            bootstrap, transactional_id=name, **OPTIONS, transaction_version_max=version
        ) as new:
            await new.init_transactions()
            async with new.transaction():
                await new.send(topic, b"new")
        codes = []
        for attempt in (old.commit_transaction, old.abort_transaction, old.begin_transaction):
            with pytest.raises(ProducerFenced, match=f"{name}.*has taken over.*close it") as error:
                await attempt()
            codes.append(error.value.code)
        await old.close()
        return codes

    fenced = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
    assert set(asyncio.run(run())) <= fenced
    assert asyncio.run(read(bootstrap, topic)) == [[b"new"]]


@both_versions
def test_transaction_with_a_record_that_failed_can_only_be_aborted(
    bootstrap, make_topic, version
) -> None:
    """A commit is refused with the reason; after the abort the next transaction is whole."""
    topic = make_topic(max_message_bytes="1000")

    async def run() -> None:
        async with Producer(
            bootstrap, transactional_id=unique("id"), **OPTIONS, transaction_version_max=version
        ) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send(topic, b"small")
            await producer.flush()
            with pytest.raises(DeliveryFailed):
                await producer.send_and_wait(topic, b"x" * 5_000)
            with pytest.raises(TransactionFailed, match=r"abort it.*max\.message\.bytes"):
                await producer.commit_transaction()
            with pytest.raises(TransactionFailed):
                await producer.send(topic, b"too late")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"again")

    asyncio.run(run())
    assert asyncio.run(read(bootstrap, topic)) == [[b"again"]]


@both_versions
def test_offsets_of_a_member_of_the_past_are_refused(bootstrap, make_topic, group, version) -> None:
    """A group that has moved on takes nothing from who is not its member (KIP-447)."""
    topic = make_topic()

    async def run() -> None:
        async with (
            Consumer(bootstrap, group_id=group) as consumer,
            Producer(
                bootstrap, transactional_id=unique("id"), **OPTIONS, transaction_version_max=version
            ) as producer,
        ):
            consumer.subscribe(topic)
            await consumer.poll(2)
            while not consumer.assignment():
                await consumer.poll(1)
            await producer.init_transactions()
            await producer.begin_transaction()
            zombie = GroupMetadata(group, 1_000, "nobody")
            with pytest.raises(CommitFailed, match=r"the group has moved on.*abort"):
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 5}, zombie)
            with pytest.raises(TransactionFailed):
                await producer.commit_transaction()
            await producer.abort_transaction()
            assert await consumer.committed(topic, 0) is None

    asyncio.run(run())


@both_versions
def test_empty_transactions_end_as_others_do(bootstrap, make_topic, version) -> None:
    """Nothing is asked of anybody; the next one works."""
    topic = make_topic()

    async def run() -> None:
        async with Producer(
            bootstrap, transactional_id=unique("id"), **OPTIONS, transaction_version_max=version
        ) as producer:
            await producer.init_transactions()
            for _ in range(2):
                await producer.begin_transaction()
                await producer.commit_transaction()
                await producer.begin_transaction()
                await producer.abort_transaction()
            async with producer.transaction():
                await producer.send(topic, b"some")

    asyncio.run(run())
    assert asyncio.run(read(bootstrap, topic)) == [[b"some"]]


def test_error_inside_a_transaction_aborts_it(bootstrap, make_topic) -> None:
    """`async with producer.transaction()` ends it either way, and the error is told."""
    topic = make_topic()

    async def _send_and_err(producer: Producer) -> None:
        async with producer.transaction():
            await producer.send(topic, b"before the error")
            raise ZeroDivisionError

    async def run() -> None:
        async with Producer(bootstrap, transactional_id=unique("id"), **OPTIONS) as producer:
            await producer.init_transactions()
            with pytest.raises(ZeroDivisionError):
                await _send_and_err(producer)
            async with producer.transaction():
                await producer.send(topic, b"after it")

    asyncio.run(run())
    assert asyncio.run(read(bootstrap, topic)) == [[b"after it"]]


def test_producer_that_closes_leaves_nothing_open(bootstrap, make_topic) -> None:
    """What was not committed is aborted at once, so that it holds up no reader."""
    topic = make_topic()

    with sync.Producer(bootstrap, transactional_id=unique("id"), **OPTIONS) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_and_wait(topic, b"never committed")
    name = TopicPartition(topic, 0)
    with sync.Consumer(bootstrap, isolation_level="read_committed") as consumer:
        # The record, and the marker that it is aborted.
        assert eventually(lambda: consumer.end_offsets([name])[name] == 2)
    assert asyncio.run(read(bootstrap, topic)) == [[]]


def test_plain_calls_do_the_same(bootstrap, make_topic, group) -> None:
    """`ottla.client.sync.Producer`: commit, abort, offsets, fencing."""
    topic, name = make_topic(), unique("id")
    where = TopicPartition(topic, 0)
    with (
        sync.Producer(bootstrap, transactional_id=name, **OPTIONS) as producer,
        sync.Consumer(bootstrap, group_id=group) as consumer,
    ):
        with pytest.raises(ClientError, match="call begin_transaction first"):
            producer.send(topic, b"outside")
        # The first transaction takes the transactional id over.
        with producer.transaction():
            producer.send(topic, b"one")
            producer.send_offsets_to_transaction({where: 7}, group)
        producer.begin_transaction()
        producer.send(topic, b"two")
        producer.send_offsets_to_transaction({where: 8}, consumer.group_metadata())
        producer.abort_transaction()
        assert consumer.committed(where) == 7
        with sync.Producer(bootstrap, transactional_id=name, **OPTIONS) as newer:
            newer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"three")
            with pytest.raises(ClientError):
                producer.commit_transaction()
    assert asyncio.run(read(bootstrap, topic)) == [[b"one"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ProducerOptions(acks=1), "acks='all'"),
        (ProducerOptions(max_in_flight_requests_per_connection=6), "at most 5"),
    ],
)
def test_options_without_idempotence_are_refused(options: ProducerOptions, words: str) -> None:
    """A transaction over batches that may stand twice would be none."""

    async def run() -> None:
        Producer("localhost:1", transactional_id="id", **options)

    with pytest.raises(ClientError, match=words):
        asyncio.run(run())


def test_calls_in_a_wrong_order_say_what_to_do_first() -> None:
    """Before anything is asked of a broker."""

    async def run() -> None:
        producer = Producer("localhost:1", transactional_id="id", **OPTIONS)
        for attempt, words in (
            (producer.commit_transaction, "call begin_transaction first"),
            (producer.abort_transaction, "there is nothing to abort"),
            (lambda: producer.send("t", b"v"), "call begin_transaction first"),
            (lambda: producer.send_batch("t", [b"v"]), "call begin_transaction first"),
            (lambda: producer.send_offsets_to_transaction({}, "g"), "call begin_transaction first"),
        ):
            with pytest.raises(ClientError, match=words) as error:
                await attempt()
            assert error.value.code is ErrorCode.INVALID_TXN_STATE
        await producer.close()

    asyncio.run(run())
