"""A share group while a broker dies: what was accepted stays so, and nothing else is lost."""

import itertools
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster
from rig.consumer import records_among

from .conftest import unique
from .test_share_consumers import configure

PARTITIONS = 6
COUNT = 120
ACCEPT, REJECT = 1, 3
PATIENCE_S = 120


class Books:
    """What was given out and accepted, by number; or rejected."""

    def __init__(self, answer: int = ACCEPT) -> None:
        self._answer = answer
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
                consumer.acknowledge(each, self._answer)
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
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(120)
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


@pytest.mark.timeout(600)
def test_letters_that_a_broker_could_not_write_before_it_died_are_written_by_the_next(
    whole: Cluster,
) -> None:
    """That a record was rejected is known; where its letter goes is away, then who was to write it.

    The topic for dead letters has one replica. Its broker is killed first, so that no letter can be
    written; then the one that leads the records, and the first is started again.
    """
    topic, dead, group = unique("queue"), unique("dlq.letters"), unique("share")
    admin = AdminClient({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(120)
    whole.wait_until_in_sync(topic)
    leader = whole.seen_by(1, [topic]).topics[topic][0].leader
    away = next(number for number in whole.members if number != leader)
    config = {"errors.deadletterqueue.group.enable": "true"}
    new = NewTopic(dead, 1, replica_assignment=[[away]], config=config)
    admin.create_topics([new])[dead].result(120)
    whole.wait_until_in_sync(dead)
    configure(
        admin,
        group,
        share_auto_offset_reset="earliest",
        errors_deadletterqueue_topic_name=dead,
        errors_deadletterqueue_copy_record_enable="true",
    )
    producer = Producer({"bootstrap.servers": whole.bootstrap, "log_level": 0})
    for number in range(COUNT):
        producer.produce(topic, str(number).encode())
    assert producer.flush(PATIENCE_S) == 0

    settings = {"share.acknowledgement.mode": "explicit", "log_level": 0}
    consumer = ShareConsumer({"bootstrap.servers": whole.bootstrap, "group.id": group, **settings})
    consumer.subscribe([topic])
    try:
        books = Books(REJECT)
        books.read(consumer, set(range(COUNT)), whole.members[away].kill)
        assert books.accepted
        whole.members[leader].kill()
        whole.members[away].start()
        found = letters_of(whole, dead, consumer, books)
    finally:
        consumer.close()
    assert found == set(range(COUNT))
    assert books.again == set()


def letters_of(whole: Cluster, dead: str, member: ShareConsumer, books: Books) -> set[int]:
    """What letters hold, up to the number of records.

    A member of the group stays meanwhile, and rejects what comes again as nobody knew of it.
    """
    reader = Consumer(
        {"bootstrap.servers": whole.bootstrap, "group.id": unique("reader"), "log_level": 0}
    )
    reader.assign([TopicPartition(dead, 0, 0)])
    found: set[int] = set()
    deadline = time.monotonic() + 2 * PATIENCE_S
    try:
        while len(found) < COUNT and time.monotonic() < deadline:
            for each in (one for one in member.poll(0.2) if one.error() is None):
                books.again |= {int(each.value() or b"")} & books.accepted
                member.acknowledge(each, REJECT)
            found |= {int(each.value() or b"") for each in records_among(reader.consume(100, 0.2))}
    finally:
        reader.close()
    return found
