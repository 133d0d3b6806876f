"""A broker process for the points of the papers, and what its disk and its counters say.

And three brokers on a real ZooKeeper, whose nodes are read by ZooKeeper's own Python client.
"""

from collections.abc import Callable, Iterator

import pytest
from rig import zookeeper as rig_zookeeper
from rig.broker import ottla
from rig.clusters import Cluster
from rig.nodes import Node
from rig.topics import topic_maker
from rig.wire_client import WireClient

from .clusters import Tree, bring_back, brokers


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


@pytest.fixture(scope="session")
def _zookeeper() -> Iterator[str]:
    if reason := rig_zookeeper.available():
        pytest.skip(reason)
    with rig_zookeeper.zookeeper(1) as ensemble:
        yield ensemble.hosts


@pytest.fixture(scope="session")
def tree(_zookeeper: str) -> Iterator[Tree]:
    """The nodes that the brokers of `three` share."""
    made = Tree(_zookeeper)
    yield made
    made.close()


@pytest.fixture(scope="session")
def _brokers(_zookeeper: str) -> Iterator[Cluster]:
    with brokers(f"zookeeper://{_zookeeper}") as cluster:
        yield cluster


@pytest.fixture
def three(_brokers: Cluster) -> Cluster:
    """Three brokers on ZooKeeper, all of them running: what a test killed is started again."""
    bring_back(_brokers)
    return _brokers


@pytest.fixture(scope="session")
def _local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("store")
    with brokers(f"sqlite://{folder}/store.sqlite") as cluster:
        yield cluster


@pytest.fixture
def local(_local: Cluster) -> Cluster:
    """Three brokers on SQLite, where the death of a process is seen at once, a controller's too."""
    bring_back(_local)
    return _local
