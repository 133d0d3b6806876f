"""A broker in this process, and the command that talks to it."""

import itertools
from collections.abc import Callable, Iterator

import pytest

import ottla.testing
from tests.system.cli.ottla_command import Command

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker() -> Iterator[ottla.testing.Broker]:
    with ottla.testing.Broker() as running:
        yield running


@pytest.fixture(scope="session")
def run(broker: ottla.testing.Broker) -> Command:
    return Command(broker.bootstrap)


@pytest.fixture
def name() -> str:
    """A name that nothing else in this session has."""
    return f"thing-{next(_numbers)}"


@pytest.fixture
def make_topic(broker: ottla.testing.Broker) -> Callable[..., str]:
    """Creates a topic without the command: `make_topic(partitions=3, **settings)`."""

    def make(partitions: int = 1, **settings: str) -> str:
        topic = f"topic-{next(_numbers)}"
        named = {key.replace("_", "."): value for key, value in settings.items()}
        broker.create_topic(topic, partitions, named)
        return topic

    return make
