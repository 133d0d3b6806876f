"""Quotas by client id: where they are kept, when they hold, and how a violator is slowed."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import metadata
from rig import zookeeper as rig_zookeeper
from rig.broker import ottla
from rig.clusters import Cluster
from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.coordination.connect import connect
from ottla.coordination.interface.store import Create
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ottla.wire.messages.produce import ProduceRequest
from tests.integration.broker import broker_client, quota_client
from tests.integration.broker.broker_client import connected
from tests.system.cli.ottla_command import Command

from .clusters import create, stored_in, until
from .raw import PRODUCE_VERSION, batch, produce_request

_numbers = itertools.count()
# The client id with which `WireClient` comes.
CLIENT = "rig"
BYTE_RATE, FETCH_RATE = "producer_byte_rate", "consumer_byte_rate"


@pytest.fixture(params=["sqlite", "zookeeper"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store, of one machine or of many."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/store.sqlite"
    if reason := rig_zookeeper.available():
        pytest.skip(reason)
    return f"zookeeper://{request.getfixturevalue('_zookeeper')}/quotas-{next(_numbers)}"


@pytest.fixture
def limited(store: str) -> Iterator[tuple[Node, WireClient, str]]:
    """A broker of its own on that store, and a client of it."""
    with ottla(settings={"coordination.connect": store}) as node, WireClient(node.port) as client:
        yield node, client, store


def alter(client: WireClient, name: str | None, **limits: float | None) -> None:
    """Set quotas of a client id, or by default (None); a limit of None takes one away."""
    entity = EntityData(entity_type="client-id", entity_name=name)
    operations = [
        OpData(key=key, value=limit or 0.0, remove=limit is None) for key, limit in limits.items()
    ]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=[entity], ops=operations)])
    (answer,) = client.call(request, 1).entries
    assert answer.error_code == 0, answer.error_message


def send(client: WireClient, size: int, topic: str = "metered") -> int:
    """Produce so many bytes, and how long the answer says to wait."""
    request: ProduceRequest = produce_request(topic, batch(bytes(size)))
    answer = client.call(request, PRODUCE_VERSION)
    found = answer.responses[0].partition_responses[0]
    assert found.error_code == 0, "slowed, and not refused"
    return int(answer.throttle_time_ms)


def kept(store: str, name: str) -> Any:
    """What the node of a client id holds."""
    data = stored_in(store, f"/config/clients/{name}")
    return json.loads(data)["config"] if data else None


def make_topic(client: WireClient, topic: str = "metered") -> None:
    """Have it created by the first to ask for it."""
    until(lambda: metadata.ask(client.socket, [topic]).topics[topic].get(0), "the topic")
    until(lambda: metadata.ask(client.socket, [topic]).topics[topic][0].leader >= 0, "its leader")


def test_a_quota_stands_in_the_papers_node_and_holds_at_once(
    limited: tuple[Node, WireClient, str],
) -> None:
    """P37: defaults and overrides under `/config/clients`, in effect without a restart."""
    node, client, store = limited
    make_topic(client)
    with WireClient(node.port) as admin:
        assert send(client, 10) == 0
        alter(admin, None, producer_byte_rate=1e9)
        assert kept(store, "<default>") == {BYTE_RATE: "1000000000"}
        assert send(client, 1000) == 0
        # The override is the client's own; it goes before the default.
        alter(admin, CLIENT, producer_byte_rate=1.0, consumer_byte_rate=2.0)
        assert kept(store, CLIENT) == {BYTE_RATE: "1", FETCH_RATE: "2"}
        assert send(client, 1000) > 900_000
    with WireClient(node.port) as other:
        alter(other, CLIENT, producer_byte_rate=None, consumer_byte_rate=None)
        assert kept(store, CLIENT) in (None, {})
        assert send(other, 1000) == 0, "the default again"
        assert node.process.alive()


def test_another_user_of_the_store_is_heard_at_once(limited: tuple[Node, WireClient, str]) -> None:
    """P37: a quota that a tool writes into `/config/clients`, with Kafka's notice, holds, too."""
    node, client, store = limited
    make_topic(client)

    async def write() -> None:
        tool = await connect(store)
        quota = {"version": 1, "config": {BYTE_RATE: "1"}}
        notice = {"version": 2, "entity_path": f"clients/{CLIENT}"}
        await tool.multi(
            [
                Create(f"/config/clients/{CLIENT}", json.dumps(quota).encode()),
                Create(
                    "/config/changes/config_change_",
                    json.dumps(notice).encode(),
                    sequential=True,
                ),
            ]
        )
        await tool.close()

    assert send(client, 1000) == 0
    asyncio.run(write())

    def is_slowed() -> bool:
        with WireClient(node.port) as late:
            return send(late, 1000) > 0

    until(is_slowed, "the quota to hold")


def test_a_user_has_quotas_too(limited: tuple[Node, WireClient, str]) -> None:
    """P37: a user's quota holds whatever its clients call themselves, and goes as it came."""
    node, client, store = limited
    make_topic(client)
    ask = Command(node.bootstrap)
    # Kafka's name for clients that did not log in.
    ask("quota", "alter", "--client-id", "another", "--set", "producer_byte_rate=1")
    assert send(client, 1000) == 0, "the quota of another client id"
    ask("quota", "alter", "--user", "ANONYMOUS", "--set", "producer_byte_rate=1")
    assert json.loads(stored_in(store, "/config/users/ANONYMOUS"))["config"] == {BYTE_RATE: "1"}
    assert send(client, 1000) > 900_000
    ask("quota", "alter", "--user", "ANONYMOUS", "--unset", "producer_byte_rate")
    with WireClient(node.port) as other:
        assert send(other, 1000) == 0


def test_each_broker_holds_clients_to_their_quotas_by_itself(three: Cluster) -> None:
    """P37: what a client has used of one broker it has not used of another."""
    create(three, "p37", [[1, 2, 3]])
    create(three, "p37-other", [[2, 3, 1]])
    with WireClient(three.members[3].port) as admin:
        alter(admin, CLIENT, producer_byte_rate=1.0)
        until(lambda: throttled(three, 1, "p37") > 10_000_000, "the quota to hold on broker 1")
        # All that was used there would take hours to pay for here.
        until(lambda: throttled(three, 2, "p37-other", size=100) > 0, "the quota on broker 2")
        assert throttled(three, 2, "p37-other", size=100) < 10_000_000
        alter(admin, CLIENT, producer_byte_rate=None)


def throttled(cluster: Cluster, number: int, topic: str, size: int = 10_000) -> int:
    """How long a client that sends so much to one broker is to wait."""
    with WireClient(cluster.members[number].port) as client:
        return send(client, size, topic)


# As the papers have it; Kafka's default, and Ottla's, is 11 windows.
WINDOWS = {"quota.window.num": "30", "quota.window.size.seconds": "1"}


def test_use_is_measured_over_thirty_windows_of_a_second() -> None:
    """P38: what 29 quiet windows have left may be used in the thirtieth; the rest is waited for.

    Nothing is refused: the answer comes, says how long to wait, and what comes sooner is not read.
    """
    with ottla(settings=WINDOWS) as node, WireClient(node.port) as client:
        make_topic(client)
        alter(client, CLIENT, producer_byte_rate=10_000.0)
        # Six seconds' worth at once: five are waited for, as one may be used in advance.
        waits_ms = send(client, 60_000)
        assert 4_000 < waits_ms < 5_100
        asked_s = time.monotonic()
        # Not read before the time: the answer takes as long as it was said to.
        assert send(client, 1) < 1_000
        assert time.monotonic() - asked_s > waits_ms / 1000 - 0.5


@pytest.mark.parametrize(("windows", "slowed"), [("30", False), ("11", True)])
def test_thirty_windows_remember_what_eleven_have_forgotten(windows: str, slowed: bool) -> None:
    """P38: a client that used little for 20 s may use what it left, if the windows reach so far."""

    async def scenario() -> None:
        settings = {**WINDOWS, "quota.window.num": windows}
        async with connected(settings=settings) as (broker, client):
            await quota_client.alter(client, quota_client.USER, producer_byte_rate=1000.0)
            assert broker.parts.quotas.throttling is not None
            broker.parts.quotas.throttling.monotonic_ms = lambda: 1_000_000
            first = await client.call(broker_client.produce("a", broker_client.batch(b"x")), 9)
            broker.parts.quotas.throttling.monotonic_ms = lambda: 1_020_000
            many = broker_client.batch(bytes(15_000))
            answer = await client.call(broker_client.produce("a", many), 9)
            assert broker_client.produced(answer).error_code == 0
            assert (first.throttle_time_ms, answer.throttle_time_ms > 0) == (0, slowed)

    asyncio.run(scenario())
