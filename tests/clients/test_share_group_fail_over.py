"""A share group while a broker dies: what was accepted stays so, and nothing else is lost."""

import itertools
import time
from collections.abc import Callable

from confluent_kafka import KafkaException, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster

from .conftest import unique
from .test_share_consumers import configure

PARTITIONS = 6
COUNT = 120
PATIENCE_S = 120


class Books:
    """What was given out and accepted, by number."""

    def __init__(self) -> None:
        # Of these the broker has said that they are accepted.
        self.accepted: set[int] = set()
        # Given out although they were.
        self.again: set[int] = set()
        # Of these nobody knows: the answer was lost with a broker.
        self.unsure: set[int] = set()

    def read(
        self, consumer: ShareConsumer, wanted: set[int], meanwhile: Callable[[], None] | None = None
    ) -> None:
        """Accept what is given out until all that is wanted was; `meanwhile` before the first."""
        deadline = time.monotonic() + PATIENCE_S
        while not wanted <= self.accepted | self.unsure and time.monotonic() < deadline:
            messages = [each for each in consumer.poll(0.5) if each.error() is None]
            if not messages:
                continue
            places: dict[tuple[str | None, int | None], set[int]] = {}
            for each in messages:
                number = int(each.value() or b"")
                if number in self.accepted:
                    self.again.add(number)
                places.setdefault((each.topic(), each.partition()), set()).add(number)
            if meanwhile is not None:
                meanwhile()
                meanwhile = None
            for each in messages:
                consumer.acknowledge(each)
            try:
                done = consumer.commit_sync(30)
            except KafkaException:
                done = {}
            for place, error in done.items():
                if error is None:
                    self.accepted |= places.pop((place.topic, place.partition), set())
            self.unsure |= set(itertools.chain(*places.values()))


def test_what_was_accepted_stays_so_though_a_broker_is_killed(whole: Cluster) -> None:
    """It leads records and the group's state, and dies while a member has records of it."""
    topic, group = unique("queue"), unique("share")
    admin = AdminClient({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(60)
    whole.wait_until_in_sync(topic)
    configure(admin, group, share_auto_offset_reset="earliest")
    producer = Producer({"bootstrap.servers": whole.bootstrap, "log_level": 0})

    def produce(first: int) -> set[int]:
        for number in range(first, first + COUNT):
            producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0
        return set(range(first, first + COUNT))

    books = Books()
    settings = {"share.acknowledgement.mode": "explicit", "log_level": 0}
    consumer = ShareConsumer({"bootstrap.servers": whole.bootstrap, "group.id": group, **settings})
    consumer.subscribe([topic])
    try:
        books.read(consumer, produce(0))
        assert books.unsure == set()
        victim = whole.seen_by(1, [topic]).topics[topic][0].leader
        books.read(consumer, produce(COUNT), whole.members[victim].kill)
        books.read(consumer, produce(2 * COUNT))
    finally:
        consumer.close()
    assert books.again == set()
    assert books.accepted | books.unsure == set(range(3 * COUNT))
