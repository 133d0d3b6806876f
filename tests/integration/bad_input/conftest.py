"""A broker process that is mistreated, and must serve on.

OTTLA_TEST_BROKER=kafka mistreats Apache Kafka instead: the error codes expected are Kafka's.
"""

import os
from collections.abc import Callable, Iterator

import pytest
from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node
from rig.probe import serves
from rig.topics import topic_maker
from rig.wire_client import WireClient

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
    """Creates a topic with a name of its own: `make_topic(partitions=3, **configs)`."""
    return topic_maker(node.bootstrap, "bad")
