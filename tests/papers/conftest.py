"""A broker process for the points of the papers, and what its disk and its counters say."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.nodes import Node
from rig.topics import wait_for_leaders
from rig.wire_client import WireClient

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A broker process with its files in a folder."""
    with ottla() as running:
        yield running


@pytest.fixture
def client(node: Node) -> Iterator[WireClient]:
    with WireClient(node.port) as made:
        yield made


@pytest.fixture(scope="session")
def make_topic(node: Node) -> Callable[..., str]:
    """Creates a topic with a name of its own: `make_topic(partitions=3, **configs)`."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})

    def make(partitions: int = 1, **configs: str) -> str:
        name = f"paper-{next(_numbers)}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        wait_for_leaders(admin, name, partitions)
        return name

    return make
