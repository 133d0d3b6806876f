"""A broker process that is mistreated, and must serve on.

OTTLA_TEST_BROKER=kafka mistreats Apache Kafka instead: the error codes expected are Kafka's.
"""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node
from rig.probe import serves
from rig.topics import wait_for_leaders
from rig.wire_client import WireClient

_numbers = itertools.count(1)
AGAINST_KAFKA = os.environ.get("OTTLA_TEST_BROKER") == "kafka"


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    if AGAINST_KAFKA:
        with kafka(quick=True) as running:
            yield running
    else:
        with ottla() as running:
            yield running


@pytest.fixture(autouse=True)
def _serves_afterwards(node: Node) -> Iterator[None]:
    """Whatever a test did to it, the same process still answers."""
    yield
    assert node.process.alive()
    assert serves(node.port)


@pytest.fixture
def client(node: Node) -> Iterator[WireClient]:
    with WireClient(node.port) as made:
        yield made


@pytest.fixture(scope="session")
def make_topic(node: Node) -> Callable[..., str]:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"bad-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        wait_for_leaders(admin, name, partitions)
        return name

    return make
