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
from rig.clusters import Cluster
from rig.kafka import kafka
from rig.kafka_cluster import kafka_cluster
from rig.nodes import Node
from rig.ottla_cluster import ottla_cluster
from rig.tools import Tools, tools

_numbers = itertools.count(1)
MakeTopic = Callable[..., str]
# The death of a process is seen at once, by its lock and its connections. Nobody is to be taken
# for dead because the machine stood still, and no leader comes home while a test looks on.
UNHURRIED = {"broker.session.timeout.ms": "60000", "auto.leader.rebalance.enable": "false"}


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A broker of its own process on loopback."""
    if _on_kafka():
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
        admin.create_topics([new])[name].result(120)
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


@pytest.fixture(scope="session")
def brokers() -> Iterator[Cluster]:
    """Three brokers, a process each. Who ends one starts it again: see `whole`."""
    with kafka_cluster(quick=True) if _on_kafka() else ottla_cluster(UNHURRIED) as running:
        yield running


@pytest.fixture
def whole(brokers: Cluster) -> Iterator[Cluster]:
    """The cluster with all its brokers, whatever is done to them here."""
    yield brokers
    for member in brokers.members.values():
        if not member.alive():
            member.start()
    brokers.wait_until(lambda: len(brokers.running) == len(brokers.members), "all brokers")
    brokers.wait_until_formed()
    # Else the next death could be that of the last one in sync.
    # To ask for a topic by its name would make one anew that was deleted a moment ago.
    brokers.wait_until_all_in_sync()


def _on_kafka() -> bool:
    return os.environ.get("OTTLA_TEST_BROKER") == "kafka"
