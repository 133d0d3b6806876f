"""A real ZooKeeper for the tests of this folder."""

from collections.abc import Iterator

import pytest
from rig import zookeeper as rig
from rig.zookeeper import Ensemble
from rig.zookeeper_secured import Secured, secured_zookeeper


@pytest.fixture(scope="session")
def _server() -> Iterator[Ensemble]:
    if reason := rig.available():
        pytest.skip(reason)
    with rig.zookeeper(1) as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def _three() -> Iterator[Ensemble]:
    if reason := rig.available():
        pytest.skip(reason)
    with rig.zookeeper(3) as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def secured() -> Iterator[Secured]:
    """One server that knows the user and the certificates of the brokers."""
    if reason := rig.available():
        pytest.skip(reason)
    with secured_zookeeper() as found:
        yield found


def _whole(ensemble: Ensemble) -> Ensemble:
    """All its servers run: what a test did to them is undone."""
    for server in ensemble.servers:
        assert server.process is not None
        server.resume()
        if not server.process.alive():
            server.start()
    ensemble.wait_until_serving()
    return ensemble


@pytest.fixture
def server(_server: Ensemble) -> Ensemble:
    """One ZooKeeper server that serves."""
    return _whole(_server)


@pytest.fixture
def three(_three: Ensemble) -> Ensemble:
    """Three that serve together."""
    return _whole(_three)
