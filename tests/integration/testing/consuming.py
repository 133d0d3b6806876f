"""Consumers of four libraries as services under test: each reads and commits in a thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import aiokafka
import confluent_kafka
import kafka

from ottla.client.sync import Consumer

Service = Callable[[str, str, str], AbstractContextManager[None]]


@contextmanager
def _in_thread(serve: Callable[[threading.Event], None]) -> Iterator[None]:
    is_closing = threading.Event()
    thread = threading.Thread(target=serve, args=(is_closing,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_closing.set()
        thread.join()


def librdkafka(bootstrap: str, group: str, topic: str) -> AbstractContextManager[None]:
    return confluent(bootstrap, group, topic, {"partition.assignment.strategy": "range"})


def kip_848(bootstrap: str, group: str, topic: str) -> AbstractContextManager[None]:
    return confluent(bootstrap, group, topic, {"group.protocol": "consumer"})


def confluent(
    bootstrap: str, group: str, topic: str, settings: dict[str, str]
) -> AbstractContextManager[None]:
    def serve(is_closing: threading.Event) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        consumer.subscribe([topic])
        while not is_closing.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                consumer.commit(message, asynchronous=False)
        consumer.close()

    return _in_thread(serve)


def kafka_python(bootstrap: str, group: str, topic: str) -> AbstractContextManager[None]:
    """Version 3.0.12 misses the outcome of its rebalance if it comes between two polls.

    So it polls for long, and knows its topic before it joins; see `groups.members.KafkaPython`.
    """

    def serve(is_closing: threading.Event) -> None:
        consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        while not consumer.partitions_for_topic(topic):
            pass
        while not is_closing.is_set():
            if consumer.poll(timeout_ms=500):
                consumer.commit()
        consumer.close()

    return _in_thread(serve)


def aiokafka_(bootstrap: str, group: str, topic: str) -> AbstractContextManager[None]:
    async def serve(is_closing: threading.Event) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        while not is_closing.is_set():
            if await consumer.getmany(timeout_ms=50):
                await consumer.commit()
        await consumer.stop()

    return _in_thread(lambda is_closing: asyncio.run(serve(is_closing)))


def ottla(bootstrap: str, group: str, topic: str) -> AbstractContextManager[None]:
    def serve(is_closing: threading.Event) -> None:
        with Consumer(bootstrap, topic, group=group, enable_auto_commit=False) as consumer:
            while not is_closing.is_set():
                if consumer.poll(timeout=0.05):
                    consumer.commit()

    return _in_thread(serve)


def share_consumer(bootstrap: str, group: str, topic: str) -> AbstractContextManager[None]:
    """A member of a share group, which acknowledges what it has read in its next poll."""

    def serve(is_closing: threading.Event) -> None:
        consumer = confluent_kafka.ShareConsumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
        )
        consumer.subscribe([topic])
        while not is_closing.is_set():
            consumer.poll(0.05)
        consumer.close()

    return _in_thread(serve)
