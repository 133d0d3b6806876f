"""Consumers of three libraries behind one face: `poll` drives one, `partitions` is its share."""

import asyncio
import concurrent.futures
import queue
import threading
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

PATIENCE_S = 120
TOPIC = "t"


class Member(Protocol):
    """One consumer of topic `t`."""

    def poll(self) -> list[bytes]: ...

    def partitions(self) -> set[int]: ...

    def close(self) -> None: ...


class Confluent:
    """librdkafka."""

    def __init__(self, bootstrap: str, group: str, **settings: object) -> None:
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                "heartbeat.interval.ms": 200,
                "session.timeout.ms": 30_000,
                "enable.auto.commit": False,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.consumer.subscribe([TOPIC])

    def poll(self) -> list[bytes]:
        messages = self.consumer.consume(100, 0.05)
        return [message.value() for message in messages if message.error() is None]

    def partitions(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


class KafkaPython:
    """kafka-python, polled without a pause by a thread of its own.

    Version 3.0.12 takes up the outcome of a rebalance only in a poll that waits for it:

    - One that comes between two polls is dropped, and the member joins anew. Where something else
      is done between them, that may go on forever; so here a thread does nothing but poll.
    - Where a leader joins because metadata of its topic are new to it, and the poll ends before the
      answer to SyncGroup, it keeps the partitions it had and sends no heartbeat any more: it never
      sees that the others take them. So here it knows its topic before it joins.

    Both are so with Apache Kafka's brokers too.
    """

    def __init__(self, bootstrap: str, group: str, topic: str = TOPIC, **settings: object) -> None:
        self._consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            **{
                "auto_offset_reset": "earliest",
                "heartbeat_interval_ms": 200,
                "session_timeout_ms": 30_000,
                "enable_auto_commit": False,
                **settings,
            },
        )
        deadline_s = time.monotonic() + PATIENCE_S
        # Asked for only after it has subscribed, since it compares with the metadata of then.
        while not self._consumer.partitions_for_topic(topic):
            assert time.monotonic() < deadline_s, f"{topic} is never known"
            time.sleep(0.01)
        self._found: queue.SimpleQueue[list[bytes] | Exception] = queue.SimpleQueue()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._consume, daemon=True)
        self._thread.start()

    def _consume(self) -> None:
        try:
            while not self._is_closing.is_set():
                found = self._consumer.poll(timeout_ms=500)
                values = [record.value for records in found.values() for record in records]
                if values:
                    self._found.put(values)
        except Exception as error:  # noqa: BLE001  For the test's thread, in its next poll.
            self._found.put(error)

    def poll(self) -> list[bytes]:
        try:
            found = self._found.get(timeout=0.05)
        except queue.Empty:
            return []
        if isinstance(found, Exception):
            raise found
        return found

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def close(self) -> None:
        self._is_closing.set()
        self._thread.join()
        self._consumer.close()


class AioKafka:
    """aiokafka, on a loop in a thread of its own."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._polling: concurrent.futures.Future[Any] | None = None
        self._call(self._start(bootstrap, group))

    async def _start(self, bootstrap: str, group: str) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            session_timeout_ms=30_000,
            enable_auto_commit=False,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        # It ends when the member has its first share, for which the others must poll meanwhile.
        self._starting = asyncio.ensure_future(self._consumer.start())

    def poll(self) -> list[bytes]:
        if not self._starting.done():
            time.sleep(0.05)
            return []
        if self._polling is None:
            work = self._consumer.getmany(timeout_ms=50)
            self._polling = asyncio.run_coroutine_threadsafe(work, self._loop)
        # In a rebalance it lasts until the others have joined, who must be polled meanwhile.
        concurrent.futures.wait([self._polling], 0.1)
        if not self._polling.done():
            return []
        found, self._polling = self._polling.result(), None
        return [record.value for records in found.values() for record in records]

    def partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def close(self) -> None:
        self._call(self._consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)


def settle(members: Sequence[Member], sizes: Sequence[int]) -> list[bytes]:
    """Poll until shares have these sizes, each partition in one; what came meanwhile."""
    values: list[bytes] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        for member in members:
            values += member.poll()
        shares = [member.partitions() for member in members]
        whole = set().union(*shares)
        if sorted(map(len, shares)) == sorted(sizes) and len(whole) == sum(sizes):
            return values
        assert time.monotonic() < deadline_s, shares


def read(members: Sequence[Member], count: int, known: set[bytes]) -> list[bytes]:
    """Poll until `count` values have come that are not in `known`."""
    values: list[bytes] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(set(values) - known) < count:
        assert time.monotonic() < deadline_s, f"{values} and no more"
        for member in members:
            values += member.poll()
    return values
