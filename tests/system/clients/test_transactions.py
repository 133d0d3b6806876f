"""Transactions with unmodified clients, of the oldest versions and of the newest."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as PythonTopicPartition
from rig.tools import Tools

MakeTopic = Callable[..., str]
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
STRINGS = "org.apache.kafka.common.serialization.StringSerializer"
# Nobody waits so long where all is well.
PATIENCE_S = 120


def consumer_of(bootstrap: str, group: str, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )


def producer_of(bootstrap: str, transactional_id: str) -> Producer:
    return Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )


def test_librdkafka_shows_what_is_committed_and_hides_what_is_not(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    """All of a transaction or nothing, over partitions; uncommitted readers see it all."""
    topic = make_topic(partitions=2)
    producer = producer_of(bootstrap, topic)
    producer.init_transactions(PATIENCE_S)
    for number in range(9):
        producer.begin_transaction()
        for index in range(2):
            producer.produce(topic, b"%d" % number, partition=index)
        # Else the client throws away what it has not sent yet.
        assert producer.flush(PATIENCE_S) == 0
        if number % 3 == 2:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)

    kept = [b"%d" % number for number in range(9) if number % 3 != 2]
    assert read_committed(bootstrap, topic, 2, 12) == kept + kept
    every = [b"%d" % number for number in range(9)]
    assert read_uncommitted(bootstrap, topic, 2, 18) == every + every


def read_committed(bootstrap: str, topic: str, partitions: int, count: int) -> list[bytes]:
    return _read(bootstrap, topic, "read_committed", partitions, count)


def read_uncommitted(bootstrap: str, topic: str, partitions: int, count: int) -> list[bytes]:
    return _read(bootstrap, topic, "read_uncommitted", partitions, count)


def _read(bootstrap: str, topic: str, isolation: str, partitions: int, count: int) -> list[bytes]:
    """So many records in order of partitions; that no more come, a last transaction shows."""
    consumer = consumer_of(bootstrap, "nobody", isolation)
    found: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        while sum(map(len, found.values())) < count:
            assert time.monotonic() < deadline_s, f"only {found} came"
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found[message.partition()].append(message.value())
    finally:
        consumer.close()
    return [value for index in range(partitions) for value in found[index]]


def test_an_open_transaction_holds_back_readers_of_committed_records(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    """Also those records behind it that are in none; until it ends (LSO)."""
    topic = make_topic()
    producer = producer_of(bootstrap, topic)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    assert producer.flush(PATIENCE_S) == 0
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    plain.produce(topic, b"plain")
    assert plain.flush(PATIENCE_S) == 0
    consumer = consumer_of(bootstrap, "nobody", "read_committed")
    where = TopicPartition(topic, 0)
    assert read_uncommitted(bootstrap, topic, 1, 2) == [b"open", b"plain"]
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(1) is None
    assert consumer.get_watermark_offsets(where, timeout=PATIENCE_S) == (0, 0)

    producer.commit_transaction(PATIENCE_S)

    assert read_committed(bootstrap, topic, 1, 2) == [b"open", b"plain"]
    consumer.close()


def test_librdkafka_passes_records_on_exactly_once(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Consume, transform, produce: output and offsets are of one transaction (P13)."""
    source, target = make_topic(partitions=2), make_topic(partitions=3)
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(300):
        plain.produce(source, b"%d" % number, partition=number % 2)
    assert plain.flush(PATIENCE_S) == 0

    passed = 0
    # The second run goes on where the first one was left with an abort.
    for stop_at in (140, 300):
        consumer = consumer_of(bootstrap, group, "read_committed")
        consumer.subscribe([source])
        producer = producer_of(bootstrap, group)
        producer.init_transactions(PATIENCE_S)
        while passed < stop_at:
            messages = _some(consumer)
            _pass_on(consumer, producer, messages, target)
            producer.commit_transaction(PATIENCE_S)
            passed += len(messages)
        if stop_at < 300:
            messages = _some(consumer)
            _pass_on(consumer, producer, messages, target)
            assert producer.flush(PATIENCE_S) == 0
            producer.abort_transaction(PATIENCE_S)
        consumer.close()

    found = read_committed(bootstrap, target, 3, 300)
    assert sorted(map(int, found)) == list(range(300))


def _some(consumer: Consumer) -> list[Any]:
    """The next 25 records at most, and one at least."""
    deadline_s = time.monotonic() + PATIENCE_S
    messages: list[Any] = []
    while not messages:
        assert time.monotonic() < deadline_s, f"no record comes from {consumer.assignment()}"
        messages = [m for m in consumer.consume(25, 1) if m.error() is None]
    return messages


def _pass_on(consumer: Consumer, producer: Producer, messages: list[Any], target: str) -> None:
    producer.begin_transaction()
    for message in messages:
        producer.produce(target, message.value(), partition=int(message.value()) % 3)
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(
        [each for each in positions if each.offset >= 0],
        consumer.consumer_group_metadata(),
        PATIENCE_S,
    )


def test_a_second_producer_fences_the_first(bootstrap: str, make_topic: MakeTopic) -> None:
    """What the first had open is aborted, and it can do no more (S24)."""
    topic = make_topic()
    first = producer_of(bootstrap, topic)
    first.init_transactions(PATIENCE_S)
    first.begin_transaction()
    first.produce(topic, b"first")
    assert first.flush(PATIENCE_S) == 0

    second = producer_of(bootstrap, topic)
    second.init_transactions(PATIENCE_S)
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(PATIENCE_S)

    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(PATIENCE_S)
    assert raised.value.args[0].fatal()
    assert read_committed(bootstrap, topic, 1, 1) == [b"second"]


def test_aiokafka_with_the_oldest_versions(
    bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    """Version 0 of every request; offsets of a group that nobody has looked for before."""
    topic = make_topic()

    async def work() -> int | None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=topic
        ) as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"1")
            with pytest.raises(ValueError, match="wanted"):
                await _fail_in_transaction(producer, topic)
            async with producer.transaction():
                await producer.send_and_wait(topic, b"3")
                await producer.send_offsets_to_transaction({AioTopicPartition(topic, 0): 7}, group)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
            found: int | None = await consumer.committed(AioTopicPartition(topic, 0))
            return found

    assert asyncio.run(asyncio.wait_for(work(), PATIENCE_S)) == 7
    assert read_committed(bootstrap, topic, 1, 2) == [b"1", b"3"]
    assert read_uncommitted(bootstrap, topic, 1, 3) == [b"1", b"2", b"3"]


async def _fail_in_transaction(producer: AIOKafkaProducer, topic: str) -> None:
    async with producer.transaction():
        await producer.send_and_wait(topic, b"2")
        raise ValueError("wanted")


def test_kafka_python(bootstrap: str, make_topic: MakeTopic, group: str) -> None:
    """Commits, aborts, and sends offsets."""
    topic = make_topic()
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    producer.init_transactions()
    for value in (b"1", b"2", b"3"):
        producer.begin_transaction()
        producer.send(topic, value).get(PATIENCE_S)
        if value == b"2":
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.begin_transaction()
    where = PythonTopicPartition(topic, 0)
    producer.send_offsets_to_transaction({where: OffsetAndMetadata(5, "", -1)}, group)
    producer.commit_transaction()
    producer.close()

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    assert consumer.committed(where) == 5
    consumer.close()
    assert read_committed(bootstrap, topic, 1, 2) == [b"1", b"3"]


def test_java_with_an_epoch_for_each_transaction(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic
) -> None:
    """KIP-890, since `transaction.version` 2 is advertised; the tool shows what there is."""
    topic = make_topic()
    producer = _java_producer(jvm, bootstrap, topic)
    record = jvm.jvm.org.apache.kafka.clients.producer.ProducerRecord
    producer.initTransactions()
    for number in range(6):
        producer.beginTransaction()
        producer.send(record(topic, str(number)))
        if number % 3 == 2:
            producer.flush()
            producer.abortTransaction()
        else:
            producer.commitTransaction()
    producer.beginTransaction()
    producer.send(record(topic, "6"))
    producer.flush()

    listed = _tool(jvm, bootstrap, "list")
    (line,) = [line for line in listed if line[0] == topic]
    assert line[3] == "Ongoing"
    (described,) = _tool(jvm, bootstrap, "describe", "--transactional-id", topic)
    assert described[3] == "6"
    assert (described[4], described[-1]) == ("Ongoing", f"{topic}-0")
    (of_partition,) = _tool(
        jvm, bootstrap, "describe-producers", "--topic", topic, "--partition", "0"
    )
    assert (of_partition[1], of_partition[2], of_partition[-1]) == ("6", "0", "12")

    producer.commitTransaction()
    producer.close()
    assert read_committed(bootstrap, topic, 1, 5) == [b"0", b"1", b"3", b"4", b"6"]


def test_the_java_tool_aborts_a_transaction(
    jvm: Tools, bootstrap: str, make_topic: MakeTopic
) -> None:
    """One that hangs in a partition (KIP-664)."""
    topic = make_topic()
    producer = producer_of(bootstrap, topic)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, b"hangs")
    assert producer.flush(PATIENCE_S) == 0
    where = ("--topic", topic, "--partition", "0")

    _tool(jvm, bootstrap, "abort", *where, "--start-offset", "0")

    (of_partition,) = _tool(jvm, bootstrap, "describe-producers", *where)
    assert of_partition[-1] == "None"
    plain = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    plain.produce(topic, b"plain")
    assert plain.flush(PATIENCE_S) == 0
    assert read_committed(bootstrap, topic, 1, 1) == [b"plain"]


def _java_producer(jvm: Tools, bootstrap: str, transactional_id: str) -> Any:
    properties = jvm.jvm.java.util.Properties()
    for name, value in {
        "bootstrap.servers": bootstrap,
        "transactional.id": transactional_id,
        "key.serializer": STRINGS,
        "value.serializer": STRINGS,
    }.items():
        properties.setProperty(name, value)
    return jvm.jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)


def _tool(jvm: Tools, bootstrap: str, *arguments: str) -> list[list[str]]:
    """What kafka-transactions prints, without its heading."""
    ran = jvm.run(TRANSACTIONS, "--bootstrap-server", bootstrap, *arguments)
    return [line.split() for line in ran.ok().splitlines()[1:]]
