"""Transactions on three brokers, of which those that matter die.

Run by hand (`python -m pytest tests/clients/by_hand_transactions_cluster.py`) and not by
`make test`: once a broker is dead, librdkafka's `send_offsets_to_transaction` may wait for it as
the group's coordinator for minutes, whatever timeout it was given. It usually takes a minute, and
once did not end within five.
"""

import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rig.clusters import Cluster

from .conftest import unique
from .test_transactions import PATIENCE_S, consumer_of, producer_of, read_committed

COUNT = 600
BATCH = 25


def make_topic(cluster: Cluster, partitions: int) -> str:
    name = unique("topic")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    new = NewTopic(name, partitions, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([new])[name].result(PATIENCE_S)
    cluster.wait_until_in_sync(name)
    return name


class Copier:
    """Passes a topic on to another, a batch in each transaction; begins anew after an error."""

    def __init__(self, bootstrap: str, source: str, target: str) -> None:
        self._bootstrap = bootstrap
        self._source = source
        self._target = target
        self.restarts = 0
        self._open()

    def _open(self) -> None:
        self.consumer = consumer_of(self._bootstrap, self._source, "read_committed")
        self.consumer.subscribe([self._source])
        self.producer = producer_of(self._bootstrap, self._source)
        self.producer.init_transactions(PATIENCE_S)

    def restart(self) -> None:
        """As a process that died: another takes its place, and knows nothing."""
        self.restarts += 1
        self.consumer.close()
        self._open()

    def step(self) -> None:
        """Pass one batch on, if there is one."""
        messages = [m for m in self.consumer.consume(BATCH, 0.5) if m.error() is None]
        if not messages:
            return
        try:
            self._pass_on(messages)
        except KafkaException:
            self.restart()

    def _pass_on(self, messages: list[Any]) -> None:
        self.producer.begin_transaction()
        for message in messages:
            self.producer.produce(self._target, message.value(), partition=int(message.value()) % 2)
        positions = self.consumer.position(self.consumer.assignment())
        self.producer.send_offsets_to_transaction(
            [each for each in positions if each.offset >= 0],
            self.consumer.consumer_group_metadata(),
            PATIENCE_S,
        )
        self.producer.commit_transaction(PATIENCE_S)


def _committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    where = [TopicPartition(topic, index) for index in range(2)]
    try:
        found = consumer.committed(where, timeout=PATIENCE_S)
        return sum(max(each.offset, 0) for each in found)
    finally:
        consumer.close()


def die_and_come_back(cluster: Cluster, number: int) -> None:
    """It comes back whatever happens: librdkafka asks a group's coordinator that it knows for ten
    minutes, dead or not, before it looks for another one to send a transaction's offsets to."""
    cluster.members[number].kill()
    time.sleep(3)
    cluster.members[number].start()


def wait_until_whole(cluster: Cluster, source: str) -> None:
    """All brokers have all that the next death may leave them alone with."""
    cluster.wait_until_formed()
    for topic in (source, "__transaction_state", "__consumer_offsets"):
        cluster.wait_until_in_sync(topic)


@pytest.mark.timeout(600)
def test_records_are_passed_on_exactly_once_while_brokers_die(whole: Cluster) -> None:
    """Each broker is killed once, and with it leaders and coordinators; the copier, too."""
    source, target = make_topic(whole, 2), make_topic(whole, 2)
    plain = Producer(
        {"bootstrap.servers": whole.bootstrap, "log_level": 0, "enable.idempotence": True}
    )
    for number in range(COUNT):
        plain.produce(source, b"%d" % number, partition=number % 2)
    assert plain.flush(PATIENCE_S) == 0
    copier = Copier(whole.bootstrap, source, target)
    victims = list(whole.members)
    deaths = 0
    back: Future[None] | None = None

    with ThreadPoolExecutor(1) as elsewhere:
        while (passed := _committed(whole.bootstrap, source, source)) < COUNT:
            if victims and passed >= COUNT * deaths // 5 + COUNT // 5:
                if back is not None:
                    back.result()
                    wait_until_whole(whole, source)
                back = elsewhere.submit(die_and_come_back, whole, victims.pop())
                deaths += 1
                if deaths == 2:
                    copier.restart()
            copier.step()
        assert back is not None
        back.result()
    copier.consumer.close()

    assert not victims
    found = read_committed(whole.bootstrap, target, 2, COUNT)
    assert Counter(map(int, found)) == Counter(range(COUNT))
