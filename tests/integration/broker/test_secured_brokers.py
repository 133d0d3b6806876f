"""Brokers that meet on a SASL_SSL listener of their own: who is let in, and what the log says."""

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.interface.store import Create
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata.nodes import encode_configs
from ottla.operations.certificates import issue, make_development_files, new_authority
from ottla.security.sasl.scram_keys import (
    ScramMechanism,
    credential_of,
    credential_text,
    salted_password,
)
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.integration.broker.broker_client import until

NOW = datetime.now(UTC)
SCRAM = ScramMechanism.SCRAM_SHA_256
PASSWORD = "of-brokers"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


async def store_with_user(tree):
    """A store that has the user of the brokers already."""
    store = MemoryStore(tree)
    salted = salted_password(SCRAM, PASSWORD, b"salt", 4096)
    text = credential_text(credential_of(SCRAM, salted, b"salt", 4096))
    await store.ensure("/config/users")
    await store.multi([Create("/config/users/broker", encode_configs({SCRAM.sasl_name: text}))])


def broker_of(number, tree, files, *, password=PASSWORD, keystore=None):
    settings = {
        "node.id": str(number),
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.enabled.mechanisms": SCRAM.sasl_name,
        "sasl.mechanism.inter.broker.protocol": SCRAM.sasl_name,
        "listener.name.brokers.scram-sha-256.sasl.jaas.config": (
            f'{MODULE} required username="broker" password="{password}";'
        ),
        "listener.name.brokers.ssl.client.auth": "required",
        "ssl.keystore.location": str(keystore or files.server),
        "ssl.truststore.location": str(files.authority),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "log.dirs": "/logs",
        "default.replication.factor": "2",
        "broker.session.timeout.ms": "60000",
    }
    return Broker(BrokerSettings(settings), filesystem=MemoryFileSystem(), store=MemoryStore(tree))


@asynccontextmanager
async def two(files, **second):
    """Broker 1 as it should be, and broker 2, which may not be."""
    tree = MemoryTree()
    await store_with_user(tree)
    brokers = broker_of(1, tree, files), broker_of(2, tree, files, **second)
    await brokers[0].start()
    starting = asyncio.ensure_future(brokers[1].start())
    try:
        await until(lambda: len(brokers[0].image.brokers) == 2)
        yield brokers
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        for broker in reversed(brokers):
            await broker.stop(clean=False)


def isr_of(broker, name):
    topic = broker.image.topics.get(name)
    return set() if topic is None else set(topic.partitions[0].isr)


def principals(broker):
    return {str(c.principal) for each in broker.serving.listeners.open for c in each.connections}


def says(caplog, *words):
    return any(all(word in line for word in words) for line in caplog.messages)


def test_brokers_replicate_after_logins_over_tls_though_no_acl_names_them(tmp_path):
    """The user of the brokers is no super user: the proof of the secret opens what brokers do."""
    files = make_development_files(tmp_path / "certs", [], "alice", NOW)

    async def scenario():
        async with two(files) as (one, other):
            await until(lambda: len(other.image.brokers) == 2)
            await one.parts.metadata.topics.auto_create("t")
            both = {BrokerId(1), BrokerId(2)}
            await until(lambda: all(isr_of(each, "t") == both for each in (one, other)))
            await until(lambda: principals(one) | principals(other) == {"User:broker"})

    asyncio.run(scenario())


def test_a_broker_with_a_wrong_password_is_refused_and_told_what_to_check(tmp_path, caplog):
    """Both logs have it: the one that connects, and the one that refuses."""
    caplog.set_level(logging.INFO)
    files = make_development_files(tmp_path / "certs", [], "alice", NOW)

    async def scenario():
        async with two(files, password="wrong-one") as (one, _):
            # Of some of them broker 2 is to follow broker 1, and so has to log in there.
            for name in ("a", "b", "c", "d"):
                await one.parts.metadata.topics.auto_create(name)
            await until(lambda: says(caplog, "refused the login of user 'broker'", "password"))
            await until(lambda: says(caplog, "login", "SCRAM-SHA-256", "127.0.0.1"))
        assert not says(caplog, "wrong-one")

    asyncio.run(scenario())


def test_an_expired_certificate_of_a_broker_is_named_with_what_to_renew(tmp_path, caplog):
    """By the broker that has it, when it starts, and by the one that meets it."""
    caplog.set_level(logging.INFO)
    files = make_development_files(tmp_path / "certs", [], "alice", NOW)
    authority = new_authority("authority", NOW)
    files.authority.write_bytes(authority.pem)
    files.server.write_bytes(issue(authority, "one", NOW, hosts=["127.0.0.1"]).pem)
    expired = tmp_path / "expired.pem"
    expired.write_bytes(issue(authority, "two", NOW, hosts=["127.0.0.1"], days=-1).pem)

    async def scenario():
        async with two(files, keystore=expired):
            assert says(caplog, "the certificate of CN=two expired", "ssl.keystore.location")
            await until(lambda: says(caplog, "certificate has expired", "renew"))

    asyncio.run(scenario())
