"""Which partition a record goes to is the producer's choice, and the user's."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from random import Random

import pytest
from rig.nodes import Node

from ottla.client import sync
from ottla.record.reader import batches, records

MakeTopic = Callable[..., str]


def keys_by_partition(node: Node, topic: str, partitions: int) -> dict[int, list[bytes | None]]:
    """What lies in each partition's files, in order."""
    found: dict[int, list[bytes | None]] = defaultdict(list)
    for index in range(partitions):
        for path in sorted((node.folder / "logs" / f"{topic}-{index}").glob("*.log")):
            data = path.read_bytes()
            for position, header in batches(data):
                found[index] += [record.key for record in records(data, position, header)]
    return found


def test_records_of_one_key_share_a_partition_in_their_order(
    node: Node, make_topic: MakeTopic
) -> None:
    """The key's hash decides by default; keys spread over all partitions (P6)."""
    topic = make_topic(partitions=4)
    with sync.Producer(node.bootstrap) as producer:
        for number in range(400):
            producer.send(topic, b"%d" % number, key=b"key-%d" % (number % 40))
    found = keys_by_partition(node, topic, 4)
    assert sorted(found) == [0, 1, 2, 3]
    homes = [{key for key in keys if key} for keys in found.values()]
    assert sum(map(len, homes)) == len(set.union(*homes)) == 40
    assert sum(map(len, found.values())) == 400


@pytest.mark.parametrize("partition", [0, 2])
def test_the_users_own_function_replaces_the_hash(
    node: Node, make_topic: MakeTopic, partition: int
) -> None:
    """A callable is told topic, key, value and count, and its answer is where it goes (P6)."""
    topic = make_topic(partitions=3)
    asked = []

    def chosen(name: str, key: bytes | None, value: bytes | None, count: int) -> int:
        asked.append((name, key, value, count))
        return partition

    with sync.Producer(node.bootstrap, partitioner=chosen) as producer:
        producer.send(topic, b"v", key=b"k1")
        producer.send(topic, b"w")
    assert asked == [(topic, b"k1", b"v", 3), (topic, None, b"w", 3)]
    assert keys_by_partition(node, topic, 3) == {partition: [b"k1", None]}


def test_records_without_a_key_use_every_partition(node: Node, make_topic: MakeTopic) -> None:
    """Random, or round robin where it is asked for: no partition stays empty (P6)."""
    topic = make_topic(partitions=3)
    chance, turns = Random(1), itertools.count()
    for chosen in (
        lambda _topic, _key, _value, count: chance.randrange(count),
        lambda _topic, _key, _value, count: next(turns) % count,
    ):
        with sync.Producer(node.bootstrap, partitioner=chosen) as producer:
            for _ in range(60):
                producer.send(topic, b"v")
    found = keys_by_partition(node, topic, 3)
    assert sum(map(len, found.values())) == 120
    assert all(len(keys) >= 20 for keys in found.values())
    assert len(found) == 3
