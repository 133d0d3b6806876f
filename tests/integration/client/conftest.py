"""Brokers for the client's tests: Ottla always, Apache Kafka beside it where Java is there."""

import itertools
import os
import time
from collections.abc import Callable, Iterator

import pytest
from rig import kafka as kafka_rig
from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node

from ottla.client import sync

_numbers = itertools.count(1)
_PATIENCE_S = 120.0
MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def ottla_node() -> Iterator[Node]:
    """Ottla as a process of its own."""
    with ottla() as running:
        yield running


@pytest.fixture(scope="session")
def kafka_node() -> Iterator[Node]:
    """Apache Kafka; the test is skipped where Java is not."""
    if reason := kafka_rig.available():
        pytest.skip(reason)
    with kafka(quick=True) as running:
        yield running


@pytest.fixture(params=["ottla", "kafka"])
def node(request: pytest.FixtureRequest) -> Node:
    """Either broker: the client must not tell them apart."""
    found: Node = request.getfixturevalue(f"{request.param}_node")
    return found


@pytest.fixture
def bootstrap(node: Node) -> str:
    return node.bootstrap


@pytest.fixture
def make_topic(bootstrap: str) -> Iterator[MakeTopic]:
    """Creates a topic with a name of its own: `make_topic(partitions=3, **configs)`."""
    with sync.Admin(bootstrap) as admin:

        def make(partitions: int = 1, **configs: str) -> str:
            name = unique("topic")
            settings = {key.replace("_", "."): value for key, value in configs.items()}
            admin.topics.create(name, partitions=partitions, config=settings)
            return name

        yield make


@pytest.fixture
def group() -> str:
    """A group name that no other test uses."""
    return unique("group")


def unique(kind: str) -> str:
    """A name that nothing else in this session has."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether `condition` comes true: Kafka shows a change some time after confirming it."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True
