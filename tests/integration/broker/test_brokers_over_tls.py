"""Brokers that reach each other over TLS, with certificates on both sides."""

import asyncio
from datetime import UTC, datetime

import pytest

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.operations.certificates import issue, make_development_files, new_authority
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.api_versions import ApiVersionsRequest
from tests.integration.broker.broker_client import until

NOW = datetime.now(UTC)


def broker_of(node_id, store, files, **more):
    settings = {
        "node.id": str(node_id),
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "log.dirs": "/logs",
        "default.replication.factor": "2",
        "broker.session.timeout.ms": "60000",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.location": str(files.authority),
        "ssl.client.auth": "required",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return Broker(BrokerSettings(settings), filesystem=MemoryFileSystem(), store=store)


def test_a_follower_joins_the_isr_over_tls(tmp_path):
    """The controller's requests and the fetches go over connections with certificates."""
    files = make_development_files(tmp_path / "certs", [], "alice", NOW)

    async def scenario():
        tree = MemoryTree()
        brokers = [broker_of(number, MemoryStore(tree), files) for number in (1, 2)]
        for broker in brokers:
            await broker.start()
        try:
            await until(lambda: all(len(each.image.brokers) == 2 for each in brokers))
            await brokers[0].parts.metadata.topics.auto_create("t")
            await until(lambda: all("t" in each.image.topics for each in brokers))
            topic = brokers[0].image.topics["t"]
            await until(
                lambda: (
                    set(brokers[0].image.topics["t"].partitions[0].isr)
                    == {BrokerId(1), BrokerId(2)}
                )
            )
            assert set(topic.partitions[0].replicas) == {BrokerId(1), BrokerId(2)}
            names = [str(c.principal) for each in brokers for c in _connections(each)]
            assert set(names) == {"User:CN=localhost"}
        finally:
            for broker in reversed(brokers):
                await broker.stop(hands_over=False)

    asyncio.run(scenario())


def _connections(broker):
    return [c for listener in broker.serving.listeners.open for c in listener.connections]


def test_a_broker_of_another_host_name_is_not_trusted(tmp_path):
    """Its certificate is of the same authority, but for another machine."""
    files = make_development_files(tmp_path / "certs", [], "alice", NOW)
    authority = new_authority("authority", NOW)
    files.authority.write_bytes(authority.pem)

    async def scenario():
        tree = MemoryTree()
        files.server.write_bytes(issue(authority, "x", NOW, hosts=["elsewhere"]).pem)
        brokers = [broker_of(number, MemoryStore(tree), files) for number in (1, 2)]
        await brokers[0].start()
        peers = brokers[0].parts.cluster.peers
        starting = asyncio.ensure_future(brokers[1].start())
        await until(lambda: len(brokers[0].image.brokers) == 2)
        with pytest.raises(OttlaError, match=r"certificate is not for '127\.0\.0\.1'"):
            await peers.request(BrokerId(2), ApiVersionsRequest(), version=0)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        for broker in reversed(brokers):
            await broker.stop(clean=False)

    asyncio.run(scenario())
