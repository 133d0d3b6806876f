"""A registration under the broker's own id: its last session's is waited for, another is not."""

import logging

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.old_session import OldSessionWait, duplicate
from ottla.coordination.interface.store import Node
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.metadata.nodes import encode_broker

OWN = BrokerImage(BrokerId(1), {"PLAINTEXT": Endpoint("new.example", 9092)})
OLD = BrokerImage(BrokerId(1), {"PLAINTEXT": Endpoint("old.example", 9093)})
NODE = Node(encode_broker(OLD, 5), 0, 7)


def test_it_waits_as_long_as_the_store_may_take_and_two_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What it waits for, and that it is over, are said once each."""
    caplog.set_level(logging.INFO)
    waits = OldSessionWait(OWN, 1_000)
    for now_ms in range(1_000, 15_000, 100):
        waits.check(NODE, 12_000, now_ms)
    waits.end(14_950)
    assert [record.message for record in caplog.records] == [
        "waiting for the end of this broker's last session: the store may take 14.0 s",
        "this broker's last session has ended, after 13.9 s: going on",
    ]


def test_a_session_that_outlives_its_time_is_anothers() -> None:
    """The refusal names both brokers."""
    waits = OldSessionWait(OWN, 1_000)
    waits.check(NODE, 12_000, 14_999)
    with pytest.raises(OttlaError) as refused:
        waits.check(NODE, 12_000, 15_000)
    assert refused.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert refused.value.message == (
        "a broker with node.id 1 already runs in this cluster, at old.example:9093, and this one"
        " is at new.example:9092: its session has not ended for 14.0 s; stop that one, or give"
        " this one another node.id and a data folder of its own"
    )


def test_a_store_that_was_away_counts_the_session_anew() -> None:
    """Its servers elected a leader, who knows of no signs of life before."""
    waits = OldSessionWait(OWN, 1_000)
    waits.begin_anew(14_000)
    waits.check(NODE, 12_000, 27_999)
    with pytest.raises(OttlaError):
        waits.check(NODE, 12_000, 28_000)


def test_nothing_is_said_of_a_start_that_waits_for_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As is usual."""
    caplog.set_level(logging.INFO)
    OldSessionWait(OWN, 0).end(10)
    assert caplog.records == []


def test_an_unreadable_registration_is_refused_as_well() -> None:
    """With the reason why its address is not known."""
    error = duplicate(OWN, Node(b"{", 0, 7))
    assert "at an unknown address (" in error.message
