"""Transactions that no coordinator will end: found, told from those that are open, and ended."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.nodes import Node
from rig.tools import Tools

from .conftest import unique
from .test_transactions import read_committed
from .transaction_calls import Who, calls

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture
def careless() -> Iterator[Node]:
    """A broker that believes of every batch that its coordinator knows of it."""
    with ottla(settings={"transaction.partition.verification.enable": "false"}) as node:
        yield node


def hanging_as_java_finds(jvm: Tools, node: Node, topic: str) -> list[tuple[str, ...]]:
    """Partition, producer id and start offset of each."""
    arguments = ("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    ran = jvm.run(TRANSACTIONS, "--bootstrap-server", node.bootstrap, *arguments)
    rows = [line.split() for line in ran.ok().splitlines()[1:]]
    return [(row[1], row[2], row[5]) for row in rows]


def txn(node: Node, *arguments: str) -> str:
    """What `ottla txn` prints."""
    command = [sys.executable, "-m", "ottla.cli", "txn", *arguments, "--bootstrap", node.bootstrap]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_hangs_is_found_and_ended(careless: Node, jvm: Tools) -> None:
    """By Kafka's tool and by ours; what its coordinator will end stays as it is."""
    topic = unique("topic")
    admin = AdminClient({"bootstrap.servers": careless.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(120)
    with calls(careless, unique("id"), topic) as producer:
        who = producer.begin()
        assert producer.add(who) == "NONE"
        assert producer.produce(who, 0) == "NONE"
        ghost = Who(who.producer_id + 5_000, 0)
        assert producer.produce(ghost, 0) == "NONE"

        found = json.loads(txn(careless, "hanging", "--older-than", "0s", "-o", "json"))
        assert [(one["partition"], one["producer_id"]) for one in found] == [
            (f"{topic}-0", ghost.producer_id)
        ]
        assert hanging_as_java_finds(jvm, careless, topic) == [("0", str(ghost.producer_id), "1")]

        txn(careless, "abort", "--partition", f"{topic}-0", "--start-offset", "1")

        assert json.loads(txn(careless, "hanging", "--older-than", "0s", "-o", "json")) == []
        assert hanging_as_java_finds(jvm, careless, topic) == []
        assert producer.end(who)[0] == "NONE"
    assert read_committed(careless.bootstrap, topic, 1, 1) == [b"value"]
