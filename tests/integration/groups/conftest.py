"""A broker in this process, and connections to it.

OTTLA_TEST_BROKER=kafka runs what does not need our own settings against Apache Kafka: the laws of
the group protocol must hold there too.
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.kafka import kafka
from rig.nodes import Node
from rig.wire_client import WireClient as RigClient

import ottla.testing
from tests.integration.groups.either import connected, start
from tests.integration.groups.wire_client import WireClient

_numbers = itertools.count(1)
# Kafka makes the topic of share groups only where as many brokers are as it is to have replicas.
_ALONE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@dataclass(frozen=True)
class GroupsBroker:
    """Where the broker is, and how to make a topic on it."""

    port: int

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def create_topic(self, name: str, partitions: int = 1) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(120)


@pytest.fixture(scope="session")
def groups_broker() -> Iterator[GroupsBroker]:
    """With a topic `t` of three partitions."""
    running: AbstractContextManager[Node | ottla.testing.Broker]
    if os.environ.get("OTTLA_TEST_BROKER") == "kafka":
        running = kafka(quick=True, settings=_ALONE)
    else:
        running = ottla.testing.Broker()
    with running as started:
        broker = GroupsBroker(started.port)
        broker.create_topic("t", partitions=3)
        yield broker


@pytest.fixture
def group() -> str:
    """A group name that no other test uses."""
    return f"group-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def wire(groups_broker: GroupsBroker, group: str) -> Iterator[WireClient]:
    """A connection to the coordinator of `group`."""
    with WireClient(groups_broker.port) as client:
        client.find_coordinator(group)
        yield client


@pytest.fixture(scope="module", params=["ottla", "kafka"])
def either(request: pytest.FixtureRequest) -> Iterator[RigClient]:
    """A connection to a broker of ours, and then to one of Kafka's."""
    with start(request.param) as running, connected(running.port) as client:
        yield client
