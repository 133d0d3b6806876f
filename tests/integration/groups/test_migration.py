"""Real clients change a group from the classic protocol to the consumer protocol and back.

One consumer after the other is replaced while records come, as in a rolling restart. Nobody is
ever given a partition that another one has, and every record is read.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

import ottla.testing
from ottla.wire.messages.groups import ListGroupsRequest
from tests.integration.groups.members import PATIENCE_S
from tests.integration.groups.wire_client import WireClient

PARTITIONS = 6
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}
CONSUMER = {"group.protocol": "consumer"}


def classic(assignor: str) -> dict[str, object]:
    return {
        "partition.assignment.strategy": assignor,
        "heartbeat.interval.ms": 200,
        "session.timeout.ms": 60_000,
    }


class Books:
    """Who has which partition, and what was read."""

    def __init__(self) -> None:
        self.owners: dict[int, Reader] = {}
        self.values: set[int] = set()


class Reader:
    """A librdkafka consumer that commits what it has read when it gives a partition up."""

    def __init__(self, broker: ottla.testing.Broker, topic: str, books: Books, **own: object):
        self.books = books
        self.read_to: dict[int, int] = {}
        settings = {name.replace("_", "."): value for name, value in own.items()}
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        self.consumer.subscribe(
            [topic], on_assign=self._take, on_revoke=self._give, on_lost=self._lose
        )

    def poll(self) -> None:
        # One at a time: what comes after a call to give a partition up is not of that.
        wait_s = 0.02
        for _ in range(50):
            message = self.consumer.poll(wait_s)
            if message is None:
                return
            wait_s = 0
            if message.error() is None:
                assert self.books.owners[message.partition()] is self
                self.books.values.add(int(message.value()))
                self.read_to[message.partition()] = message.offset() + 1

    def close(self) -> None:
        self.consumer.close()
        assert self not in self.books.owners.values()

    def _take(self, _: object, given: list[confluent_kafka.TopicPartition]) -> None:
        for each in given:
            assert each.partition not in self.books.owners, "two have it"
            self.books.owners[each.partition] = self

    def _give(self, _: object, taken: list[confluent_kafka.TopicPartition]) -> None:
        offsets = [
            confluent_kafka.TopicPartition(each.topic, each.partition, self.read_to[each.partition])
            for each in taken
            if each.partition in self.read_to
        ]
        if offsets:
            # One whose generation is over just now may not: then the next one reads it again.
            with contextlib.suppress(confluent_kafka.KafkaException):
                self.consumer.commit(offsets=offsets, asynchronous=False)
        self._lose(_, taken)

    def _lose(self, _: object, taken: list[confluent_kafka.TopicPartition]) -> None:
        for each in taken:
            self.read_to.pop(each.partition, None)
            if self.books.owners.get(each.partition) is self:
                del self.books.owners[each.partition]


@pytest.fixture(scope="module")
def broker() -> Iterator[ottla.testing.Broker]:
    with ottla.testing.Broker(settings=QUICK) as running:
        yield running


def settle(readers: list[Reader], books: Books, produce: Callable[[], None]) -> None:
    """Poll until every partition has its reader, each reader has some, and all is stable."""
    deadline_s = time.monotonic() + PATIENCE_S
    quiet = 0
    before: dict[int, Reader] = {}
    while quiet < 20:
        produce()
        for reader in readers:
            reader.poll()
        is_whole = len(books.owners) == PARTITIONS and set(books.owners.values()) == set(readers)
        quiet = quiet + 1 if is_whole and books.owners == before else 0
        before = dict(books.owners)
        assert time.monotonic() < deadline_s, books.owners


def kind(broker: ottla.testing.Broker, group: str) -> str:
    with WireClient(broker.port) as wire:
        listed = wire.ask(ListGroupsRequest(), 5).groups
        return next(each.group_type for each in listed if each.group_id == group)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_group_is_rolled_to_the_consumer_protocol_and_back(
    broker: ottla.testing.Broker, group: str, assignor: str
) -> None:
    """It is of the consumer protocol as long as one member is, and reads on all the time."""
    broker.create_topic(group, partitions=PARTITIONS)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    numbers = itertools.count()
    books = Books()

    def produce() -> None:
        number = next(numbers)
        producer.produce(group, str(number).encode(), partition=number % PARTITIONS)
        producer.poll(0)

    old, new = classic(assignor), CONSUMER
    readers = [Reader(broker, group, books, **old) for _ in range(2)]
    settle(readers, books, produce)
    assert kind(broker, group) == "classic"
    for settings in (new, old):
        for _ in range(2):
            readers.append(Reader(broker, group, books, **settings))
            settle(readers, books, produce)
            assert kind(broker, group) == "consumer"
            readers.pop(0).close()
            settle(readers, books, produce)
    assert kind(broker, group) == "classic"
    assert producer.flush(PATIENCE_S) == 0
    count = next(numbers)
    deadline_s = time.monotonic() + PATIENCE_S
    while len(books.values) < count:
        for reader in readers:
            reader.poll()
        assert time.monotonic() < deadline_s, set(range(count)) - books.values
    for reader in readers:
        reader.close()
    assert books.values == set(range(count))
