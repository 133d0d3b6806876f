"""Logins, users and delegation tokens: Ottla answers as Apache Kafka does."""

from collections.abc import Callable, Iterator

import pytest
from rig.kafka import available

from tests.protocol.security import logins, tokens, users
from tests.protocol.security.pair import Ports, kafka_ports, own_ports

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Ports, Ports]]:
    with own_ports() as own, kafka_ports() as kafkas:
        yield own, kafkas


@pytest.mark.parametrize(
    "transcript", [tokens.transcript, logins.transcript, users.transcript], ids=str
)
def test_every_answer_is_kafkas(
    pair: tuple[Ports, Ports], transcript: Callable[[Ports], list[str]]
) -> None:
    """Codes, names and times of the same requests in the same order."""
    own, kafkas = (transcript(ports) for ports in pair)
    assert own == kafkas
