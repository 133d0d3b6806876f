"""Four clients write and read in a group on three brokers, while the leader is killed.

Each writes with acks=all and idempotence at its defaults for retries; none may report an error,
and what was acknowledged is read by the group.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from rig.clusters import Cluster
from rig.consumer import close, records_among
from rig.tools import Tools

from .conftest import unique
from .test_java_clients import consumer_of, items, producer_of, record

COUNT = 300
PAUSE_S = 0.005
PATIENCE_S = 100.0
Values = Iterator[bytes]


class Reading:
    """What a group has read so far, until it is `COUNT` different records."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.began = threading.Event()
        self.give_up = threading.Event()

    def took(self, values: list[bytes]) -> None:
        self.values += values

    @property
    def is_over(self) -> bool:
        return self.give_up.is_set() or len(set(self.values)) == COUNT


def in_background(work: Callable[[], None]) -> Future[None]:
    """Run it in a thread that nobody waits for: a client that hangs fails its own test alone."""
    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001  Raised where its result is asked for.
            done.set_exception(failure)
        else:
            done.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    return done


def write_with_librdkafka(bootstrap: str, topic: str, values: Values) -> list[bytes]:
    acknowledged: list[bytes] = []
    errors: list[object] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    )

    def on_delivery(error: object, message: Any) -> None:
        if error is not None:
            errors.append(error)
        else:
            acknowledged.append(message.value())

    for value in values:
        producer.produce(topic, value, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert errors == []
    return acknowledged


def read_with_librdkafka(bootstrap: str, topic: str, group: str, reading: Reading) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    while not reading.is_over:
        found = records_among(consumer.consume(100, 0.1))
        reading.took([message.value() for message in found])
        if consumer.assignment():
            reading.began.set()
    close(consumer, PATIENCE_S)


def write_with_kafka_python(bootstrap: str, topic: str, values: Values) -> list[bytes]:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","), acks="all", enable_idempotence=True
    )
    sent = [(value, producer.send(topic, value)) for value in values]
    acknowledged = [value for value, future in sent if future.get(PATIENCE_S) is not None]
    producer.close(PATIENCE_S)
    return acknowledged


def read_with_kafka_python(bootstrap: str, topic: str, group: str, reading: Reading) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
    )
    # See `integration.groups.members.KafkaPython`: it must know the topic of its subscription
    # before it joins, and polls must be longer than a rebalance lasts.
    while not consumer.partitions_for_topic(topic) and not reading.is_over:
        time.sleep(0.01)
    while not reading.is_over:
        for found in consumer.poll(timeout_ms=5_000).values():
            reading.took([message.value for message in found])
        if consumer.assignment():
            reading.began.set()
    consumer.close()


def write_with_aiokafka(bootstrap: str, topic: str, values: Values) -> list[bytes]:
    async def work() -> list[bytes]:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True
        ) as producer:
            sent = []
            # The values come at their pace from a thread, so that this loop goes on meanwhile.
            while (value := await asyncio.to_thread(next, values, None)) is not None:
                sent.append((value, await producer.send(topic, value)))
            await asyncio.wait_for(producer.flush(), PATIENCE_S)
            return [value for value, future in sent if (await future) is not None]

    return asyncio.run(work())


def read_with_aiokafka(bootstrap: str, topic: str, group: str, reading: Reading) -> None:
    async def work() -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        async with consumer:
            while not reading.is_over:
                for found in (await consumer.getmany(timeout_ms=100)).values():
                    reading.took([message.value for message in found])
                if consumer.assignment():
                    reading.began.set()
            # Where its coordinator died, aiokafka 0.14 commits for ever when it is stopped before
            # it has found the next one: while it stops it looks for none.
            await asyncio.wait_for(consumer.commit(), PATIENCE_S)

    asyncio.run(work())


def write_with_java(jvm: Tools) -> Callable[[str, str, Values], list[bytes]]:
    def write(bootstrap: str, topic: str, values: Values) -> list[bytes]:
        producer = producer_of(jvm, bootstrap, acks="all", enable_idempotence="true")
        sent = [(v, producer.send(record(jvm, topic, v.decode()))) for v in values]
        seconds = jvm.jvm.java.util.concurrent.TimeUnit.SECONDS
        limit = (int(PATIENCE_S), seconds)
        acknowledged = [value for value, future in sent if future.get(*limit) is not None]
        producer.close()
        return acknowledged

    return write


def read_with_java(jvm: Tools) -> Callable[[str, str, str, Reading], None]:
    def read(bootstrap: str, topic: str, group: str, reading: Reading) -> None:
        consumer = consumer_of(jvm, bootstrap, group)
        consumer.subscribe([topic])
        moment = jvm.jvm.java.time.Duration.ofMillis(100)
        while not reading.is_over:
            reading.took([found.value().encode() for found in items(consumer.poll(moment))])
            if not consumer.assignment().isEmpty():
                reading.began.set()
        consumer.close()

    return read


@pytest.fixture(params=["librdkafka", "kafka-python", "aiokafka", "java"])
def client(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """How it writes, and how it reads."""
    match request.param:
        case "librdkafka":
            return write_with_librdkafka, read_with_librdkafka
        case "kafka-python":
            return write_with_kafka_python, read_with_kafka_python
        case "aiokafka":
            return write_with_aiokafka, read_with_aiokafka
    jvm = request.getfixturevalue("jvm")
    return write_with_java(jvm), read_with_java(jvm)


@pytest.mark.timeout(360)
def test_what_was_acknowledged_is_read_though_the_leader_is_killed(
    whole: Cluster, client: tuple[Any, Any]
) -> None:
    """With kill -9 in the middle of the stream: nothing is lost, and no client hears an error."""
    write, read = client
    topic, group = unique("dies"), unique("group")
    admin = AdminClient({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    new = NewTopic(topic, 1, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([new])[topic].result(120)
    whole.wait_until_in_sync(topic)
    leader = whole.seen_by(1, [topic]).topics[topic][0].leader

    def paced() -> Values:
        for number in range(COUNT):
            if number == COUNT // 2:
                whole.members[leader].kill()
            yield b"%d" % number
            time.sleep(PAUSE_S)

    reading = Reading()
    done = in_background(lambda: read(whole.bootstrap, topic, group, reading))
    done.add_done_callback(lambda _done: reading.began.set())
    try:
        assert reading.began.wait(PATIENCE_S)
        acknowledged = write(whole.bootstrap, topic, paced())
        done.result(PATIENCE_S)
    finally:
        reading.give_up.set()

    assert sorted(acknowledged, key=int) == [b"%d" % number for number in range(COUNT)]
    assert set(reading.values) == set(acknowledged)
