"""A client whose address is wrong says so at once and fails soon; a right one is waited for."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rig.probe import free_port

from ottla.client import (
    Admin,
    AdminOptions,
    BootstrapFailed,
    ConnectionFailed,
    Consumer,
    ConsumerOptions,
    Producer,
    ProducerOptions,
    TopicPartition,
    admin,
    sync,
)
from ottla.client.consumer import options as consumer
from ottla.client.producer import options as producer
from ottla.testing import Broker

SOON_MS = 200
SENDING = ProducerOptions(bootstrap_timeout_ms=SOON_MS)
READING = ConsumerOptions(bootstrap_timeout_ms=SOON_MS, group_id="g")
ASKING = AdminOptions(bootstrap_timeout_ms=SOON_MS)


async def polled(consumer: Consumer) -> None:
    consumer.subscribe("t")
    while True:
        assert await consumer.poll(0.1) == []


async def iterated(consumer: Consumer) -> None:
    consumer.subscribe("t")
    await anext(consumer)


def polled_plainly(consumer: sync.Consumer) -> None:
    consumer.subscribe("t")
    while True:
        assert consumer.poll(0.1) == []


ASYNCHRONOUS: dict[str, tuple[Callable[[str], Any], Callable[[Any], Any]]] = {
    "send": (lambda at: Producer(at, **SENDING), lambda p: p.send("t", b"v")),
    "send_batch": (lambda at: Producer(at, **SENDING), lambda p: p.send_batch("t", [b"v"])),
    "partitions_for": (lambda at: Producer(at, **SENDING), lambda p: p.partitions_for("t")),
    "init_transactions": (
        lambda at: Producer(at, transactional_id="id", **SENDING),
        lambda p: p.init_transactions(),
    ),
    "assign": (lambda at: Consumer(at, **READING), lambda c: c.assign([("t", 0)])),
    "poll": (lambda at: Consumer(at, **READING), polled),
    "iterate": (lambda at: Consumer(at, **READING), iterated),
    "commit": (lambda at: Consumer(at, **READING), lambda c: c.commit({TopicPartition("t", 0): 1})),
    "end_offsets": (lambda at: Consumer(at, **READING), lambda c: c.end_offsets([("t", 0)])),
    "topics": (lambda at: Admin(at, **ASKING), lambda a: a.topics.all()),
    "groups": (lambda at: Admin(at, **ASKING), lambda a: a.groups.describe_all("g")),
    "create": (lambda at: Admin(at, **ASKING), lambda a: a.topics.create("t")),
}
PLAIN: dict[str, tuple[Callable[[str], Any], Callable[[Any], Any]]] = {
    "send": (lambda at: sync.Producer(at, **SENDING), lambda p: p.send("t", b"v")),
    "poll": (lambda at: sync.Consumer(at, **READING), polled_plainly),
    "iterate": (
        lambda at: sync.Consumer(at, **READING),
        lambda c: (c.subscribe("t"), next(iter(c))),
    ),
    "topics": (lambda at: sync.Admin(at, **ASKING), lambda a: a.topics.all()),
}


@pytest.fixture
def nowhere() -> str:
    """An address where nothing listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def mute() -> Iterator[str]:
    """An address where something listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def expect(error: BootstrapFailed, address: str, lines: list[str]) -> None:
    """The error, and one warning before it, name the address, the cause and the remedy."""
    assert f"no broker answered at {address} within bootstrap_timeout_ms=200" in error.message
    assert "nc -vz" in error.message
    (line,) = [line for line in lines if "no broker has answered yet" in line]
    assert address in line
    assert "nc -vz" in line


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_every_first_call_fails_soon_and_warns_before(
    name: str, nowhere: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It waited for two minutes, or for ever, without a word."""
    make, call = ASYNCHRONOUS[name]

    async def main() -> None:
        client = make(nowhere)
        try:
            await call(client)
        finally:
            await client.close()

    with pytest.raises(BootstrapFailed) as failed:
        asyncio.run(main())
    expect(failed.value, nowhere, caplog.messages)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_calls_fail_soon_and_warn_before(
    name: str, nowhere: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, call = PLAIN[name]
    with pytest.raises(BootstrapFailed) as failed, make(nowhere) as client:
        call(client)
    expect(failed.value, nowhere, caplog.messages)


def test_an_address_that_never_answers_is_as_wrong(mute: str) -> None:
    """Another service's port: the connection opens, and no answer comes."""
    with (
        pytest.raises(BootstrapFailed, match=f"no broker answered at {mute}"),
        sync.Producer(mute, **SENDING) as producer,
    ):
        producer.send("t", b"v")


def test_another_call_fails_at_once_and_succeeds_once_a_broker_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The time limit is that of the first contact, not of each call; the warning comes once."""
    port = free_port()
    with sync.Admin(f"127.0.0.1:{port}", **ASKING) as admin:
        for _ in range(3):
            with pytest.raises(BootstrapFailed):
                admin.topics.all()
        with Broker(port=port):
            assert admin.topics.all() == []
    assert len([line for line in caplog.messages if "no broker has answered yet" in line]) == 1


def test_one_right_address_among_wrong_ones_is_enough(nowhere: str) -> None:
    with Broker() as broker, sync.Admin(f"{nowhere},{broker.bootstrap}", **ASKING) as admin:
        assert admin.topics.all() == []


def test_once_a_broker_has_answered_brokers_that_are_away_are_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As long as default_api_timeout_ms says: the address was right."""
    options = AdminOptions(bootstrap_timeout_ms=SOON_MS, default_api_timeout_ms=1_000)
    with Broker() as broker:
        admin = sync.Admin(broker.bootstrap, **options)
        assert admin.topics.all() == []
    with admin, pytest.raises(ConnectionFailed):
        admin.topics.all()
    assert "no broker has answered yet" not in caplog.text


def test_five_seconds_are_the_default() -> None:
    for options in (producer.DEFAULTS, consumer.DEFAULTS, admin.DEFAULTS):
        assert options["bootstrap_timeout_ms"] == 5_000
