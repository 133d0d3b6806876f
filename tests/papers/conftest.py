"""A broker process for the points of the papers, and what its disk and its counters say."""

from collections.abc import Callable, Iterator

import pytest
from rig.broker import ottla
from rig.nodes import Node
from rig.topics import topic_maker
from rig.wire_client import WireClient


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
    return topic_maker(node.bootstrap, "paper")
