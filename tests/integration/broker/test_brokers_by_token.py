"""Brokers that log in to each other by tokens of an issuer, over TLS."""

import asyncio
from datetime import UTC, datetime

from rig.issuer import AUDIENCE, Issuer, serving

from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.operations.certificates import make_development_files
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.integration.broker.broker_client import until

SECRET = "the-secret-of-the-brokers"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def broker_of(node_id, store, files, issuer):
    jaas = (
        f'{MODULE} required clientId="brokers" clientSecret="{SECRET}" '
        f'ssl.truststore.location="{files.authority}";'
    )
    settings = {
        "node.id": str(node_id),
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.allowed.urls": f"{issuer.keys_url},{issuer.token_url}",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": issuer.name,
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": jaas,
        "log.dirs": "/logs",
        "default.replication.factor": "2",
        "broker.session.timeout.ms": "60000",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.location": str(files.authority),
    }
    return Broker(BrokerSettings(settings), filesystem=MemoryFileSystem(), store=store)


def test_a_follower_joins_the_isr_with_a_token(tmp_path, caplog):
    """A broker asks the issuer for one token; its sessions do not end with it."""
    files = make_development_files(tmp_path / "certs", [], "alice", datetime.now(UTC))
    issuer = Issuer(clients={"brokers": SECRET}, lifetime_s=1)

    async def scenario():
        tree = MemoryTree()
        brokers = [broker_of(number, MemoryStore(tree), files, issuer) for number in (1, 2)]
        for broker in brokers:
            await broker.start()
        try:
            await until(lambda: all(len(each.image.brokers) == 2 for each in brokers))
            for topic in ("t", "after-the-tokens-end"):
                await brokers[0].parts.metadata.topics.auto_create(topic)
                await until(
                    lambda topic=topic: all(
                        topic in each.image.topics
                        and set(each.image.topics[topic].partitions[0].isr)
                        == {BrokerId(1), BrokerId(2)}
                        for each in brokers
                    )
                )
                before = {id(c) for each in brokers for c in _connections(each)}
                await asyncio.sleep(1.2)
            assert before & {id(c) for each in brokers for c in _connections(each)}
            names = [str(c.principal) for each in brokers for c in _connections(each)]
            assert set(names) == {"User:brokers"}
        finally:
            for broker in reversed(brokers):
                await broker.stop(hands_over=False)

    with serving(issuer, files.server):
        asyncio.run(scenario())
    assert SECRET not in caplog.text
    assert "eyJ" not in caplog.text


def _connections(broker):
    return [c for listener in broker.serving.listeners.open for c in listener.connections]
