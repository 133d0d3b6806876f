"""One broker process for all client tests of a session.

OTTLA_TEST_BROKER=kafka runs the same tests against Apache Kafka: they must hold there too.
"""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node
from rig.tools import Tools, tools

_numbers = itertools.count(1)
MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A broker of its own process on loopback."""
    if os.environ.get("OTTLA_TEST_BROKER") == "kafka":
        with kafka(quick=True) as running:
            yield running
    else:
        with ottla() as running:
            yield running


@pytest.fixture(scope="session")
def bootstrap(node: Node) -> str:
    return node.bootstrap


@pytest.fixture(scope="session")
def admin(node: Node) -> AdminClient:
    """librdkafka's admin client, to arrange what a test needs."""
    return AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})


@pytest.fixture
def make_topic(admin: AdminClient) -> MakeTopic:
    """Creates a topic with a name of its own: `make_topic(partitions=3, **configs)`."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = unique("topic")
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        new = NewTopic(name, partitions, 1, config=settings)
        admin.create_topics([new])[name].result(30)
        return name

    return make


@pytest.fixture
def group() -> str:
    """A group name that no other test uses."""
    return unique("group")


@pytest.fixture(scope="session")
def jvm() -> Iterator[Tools]:
    """A JVM with Kafka's tools and clients; the test is skipped where Java is not."""
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with tools() as running:
        yield running


def unique(kind: str) -> str:
    """A name that nothing else in this session has."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"
