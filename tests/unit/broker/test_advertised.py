"""Which address each client is told."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.addresses import (
    BrokerAddress,
    broker_address,
    broker_addresses,
    own_image,
)
from ottla.broker.cluster.registration import (
    agree_on_cluster_id,
    known_brokers,
    known_cluster_id,
    known_racks,
    name_cluster,
    new_cluster_id,
    prepare,
    register,
)
from ottla.coordination.interface.store import NodeExists
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint

REACHED = SimpleNamespace(listener="PLAINTEXT", local_host="10.0.0.5")
OTHER = BrokerImage(2, {"PLAINTEXT": Endpoint("other", 9092), "IN": Endpoint("in", 1)}, "r2")


def asked(*brokers):
    """An image with these brokers."""
    return ClusterImage("c", brokers={b.id: b for b in brokers})


def registered(broker_id, port=9000, **settings):
    """The image of a broker that listens on `port`."""
    static = {name.replace("_", "."): value for name, value in settings.items()}
    return own_image(broker_id, BrokerSettings(static), {"PLAINTEXT": port})


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"listeners": "PLAINTEXT://localhost:9000"}, "localhost"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9000"}, "127.0.0.1"),
        ({"listeners": "PLAINTEXT://[::1]:9000"}, "::1"),
        ({"listeners": "PLAINTEXT://:9000"}, "10.0.0.5"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9000"}, "10.0.0.5"),
        ({"listeners": "PLAINTEXT://[::]:9000"}, "10.0.0.5"),
        ({"listeners": "PLAINTEXT://[0:0:0:0:0:0:0:0]:9000"}, "10.0.0.5"),
        (
            {"listeners": "PLAINTEXT://:0", "coordination_connect": "zookeeper://a:2181"},
            socket.getfqdn(),
        ),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:9000",
                "advertised_listeners": "PLAINTEXT://public:0",
            },
            "public",
        ),
    ],
)
def test_a_configured_host_is_given_as_it_is(settings, host):
    """What the socket says stands in for a wildcard only; the port is the one listened on."""
    told = asked(registered(1, **settings), OTHER)
    assert broker_addresses(told, REACHED) == [
        BrokerAddress(1, host, 9000, None),
        BrokerAddress(2, "other", 9092, "r2"),
    ]
    assert broker_address(told, BrokerId(1), REACHED) == BrokerAddress(1, host, 9000, None)


def test_a_broker_that_is_gone_has_no_address():
    """None, for the caller to say what that means."""
    assert broker_address(asked(OTHER), 3, REACHED) is None


def test_brokers_that_start_at_once_prepare_the_store_together():
    """Whoever is second finds what the first made, all of it."""

    class Late(MemoryStore):
        async def get(self, path):
            node = await super().get(path)
            if path == "/admin":
                await prepare(MemoryStore(self._tree))
            return node

    async def main():
        store = Late()
        await prepare(store)
        assert set(paths.FOUNDATIONS) <= set(await store.subtree("/"))
        await prepare(store)

    asyncio.run(main())


def test_the_cluster_id_is_agreed_on_once():
    """The first to propose wins; later ones learn it."""

    async def main():
        tree = MemoryTree()
        first, second = MemoryStore(tree), MemoryStore(tree)
        await prepare(first)
        assert await agree_on_cluster_id(first, "mine") == "mine"
        assert await agree_on_cluster_id(second, "yours") == "mine"

    asyncio.run(main())


def test_a_new_cluster_id_has_kafkas_form():
    """22 characters of a random UUID."""
    assert new_cluster_id(bytes) == "AAAAAAAAQACAAAAAAAAAAA"


def test_what_a_cluster_begins_with_is_written_at_once_and_only_by_the_first():
    """In one write with all that hangs from the root; later brokers find it and write nothing."""

    async def main():
        tree = MemoryTree()
        first, second = MemoryStore(tree), MemoryStore(tree)
        await prepare(first, [name_cluster("mine")])
        assert await known_cluster_id(second) == "mine"
        history = await second.history()
        await prepare(second, [name_cluster("yours")])
        assert await agree_on_cluster_id(second, "yours") == "mine"
        assert await second.history() == history

    asyncio.run(main())


def test_the_rack_of_a_broker_outlives_its_registration():
    """New topics keep its rack in mind while it is down; one without a rack has none."""

    async def main():
        store = MemoryStore()
        await prepare(store)
        session = await store.open_session(1000)
        await register(store, session, OTHER, 5)
        await register(store, session, BrokerImage(3, {}), 5)
        await session.close()
        assert await known_racks(store) == {2: "r2", 3: None}
        assert (await known_brokers(store))[OTHER.id].endpoints == OTHER.endpoints

    asyncio.run(main())


def test_a_broker_is_registered_as_long_as_its_session_lives():
    """An ephemeral node; another broker of the same id is refused meanwhile."""

    async def main():
        tree = MemoryTree()
        store, twin = MemoryStore(tree), MemoryStore(tree)
        await prepare(store)
        session = await store.open_session(1000)
        await register(store, session, OTHER, 5)
        with pytest.raises(NodeExists):
            await register(twin, await twin.open_session(1000), OTHER, 6)
        assert await store.children(paths.BROKER_IDS) == ["2"]
        await session.close()
        assert await store.children(paths.BROKER_IDS) == []

    asyncio.run(main())


def test_a_damaged_cluster_id_is_refused():
    """A broker must not guess which cluster it is in."""

    async def main():
        store = MemoryStore()
        await prepare(store)
        await store.ensure(paths.CLUSTER_ID)
        with pytest.raises(OttlaError):
            await agree_on_cluster_id(store, "x")

    asyncio.run(main())
