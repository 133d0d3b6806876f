"""Which address each client is told."""

import asyncio
from types import SimpleNamespace

import pytest

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.advertised import BrokerAddress, broker_address, broker_addresses
from ottla.broker.registration import (
    agree_on_cluster_id,
    known_brokers,
    known_cluster_id,
    name_cluster,
    new_cluster_id,
    prepare,
    register,
)
from ottla.coordination.memory import MemoryStore, MemoryTree
from ottla.coordination.store import NodeExists
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, ClusterImage, Endpoint

REACHED = SimpleNamespace(listener="PLAINTEXT", local_host="10.0.0.5", local_port=9000)
OTHER = BrokerImage(2, {"PLAINTEXT": Endpoint("other", 9092), "IN": Endpoint("in", 1)}, "r2")


def broker(**settings):
    static = {name.replace("_", "."): value for name, value in settings.items()}
    image = ClusterImage("c", brokers={2: OTHER, 1: BrokerImage(1, {}, "r1")})
    return SimpleNamespace(settings=BrokerSettings(static), broker_id=1, image=image)


def test_this_broker_is_where_the_client_reached_it():
    """Others are where they say."""
    assert broker_addresses(broker(), REACHED) == [
        BrokerAddress(1, "10.0.0.5", 9000, "r1"),
        BrokerAddress(2, "other", 9092, "r2"),
    ]


def test_an_advertised_address_is_told_instead():
    """Port 0 there stands for the port reached."""
    told = broker(advertised_listeners="PLAINTEXT://public:0")
    assert broker_address(told, 1, REACHED) == BrokerAddress(1, "public", 9000, "r1")


def test_a_broker_that_is_gone_has_no_address():
    """None, for the caller to say what that means."""
    assert broker_address(broker(), 3, REACHED) is None


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
        assert await known_brokers(store) == {2: "r2", 3: None}

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
