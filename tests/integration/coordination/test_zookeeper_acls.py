"""ACLs, users and quotas of a cluster on a real ZooKeeper: stored there, in effect everywhere."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import asynccontextmanager

import pytest
from rig import kafka
from rig import tools as t
from rig.tools import Tools
from rig.zookeeper_secured import PASSWORD, USER

from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.security.names import AclOperation, AclResource
from ottla.security.principal import Principal
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.integration.broker.broker_client import until

_numbers = itertools.count()


@pytest.fixture
def jvm() -> Iterator[Tools]:
    """Kafka's tools in a JVM; the test is skipped where Java is not."""
    if reason := kafka.available():
        pytest.skip(reason)
    with t.tools() as found:
        yield found


def broker_of(number, where):
    settings = {
        "node.id": str(number),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": "/logs",
        "coordination.connect": where,
        "coordination.user": USER,
        "coordination.password": PASSWORD,
        "coordination.sasl.mechanism": "DIGEST-MD5",
        "broker.session.timeout.ms": "60000",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    return Broker(BrokerSettings(settings), filesystem=MemoryFileSystem())


@asynccontextmanager
async def three(where):
    brokers = [broker_of(number, where) for number in (1, 2, 3)]
    for broker in brokers:
        await broker.start()
    try:
        await until(lambda: all(len(each.image.brokers) == 3 for each in brokers))
        yield brokers
    finally:
        for broker in reversed(brokers):
            await broker.stop(hands_over=False)


def may_write(broker, user):
    assert broker.parts.access.acls is not None
    return broker.parts.access.acls.authorizer.allows(
        Principal("User", user), "10.0.0.7", AclOperation.WRITE, AclResource.TOPIC, "flights"
    )


def test_kafkas_tools_change_what_holds_on_all_brokers_of_a_zookeeper(secured, jvm):
    """kafka-acls and kafka-configs ask one broker; the others know when ZooKeeper notifies them."""
    where = f"zookeeper://{secured.open_hosts}/acls-{next(_numbers)}"

    async def scenario():
        loop = asyncio.get_running_loop()

        async def run(tool, *words):
            bootstrap = f"127.0.0.1:{brokers[1].port}"
            made = ("--bootstrap-server", bootstrap, *words)
            return await loop.run_in_executor(None, lambda: jvm.run(tool, *made))

        async with three(where) as brokers:
            rule = ("--allow-principal", "User:alice", "--operation", "Write", "--topic", "flights")
            await run(t.ACLS, "--add", *rule)
            await until(lambda: all(may_write(each, "alice") for each in brokers))
            assert not any(may_write(each, "bob") for each in brokers)
            more = ("--deny-principal", "User:alice", "--operation", "All", "--topic", "fl")
            await run(t.ACLS, "--add", *more, "--resource-pattern-type", "prefixed")
            await until(lambda: not any(may_write(each, "alice") for each in brokers))
            user = ("--entity-type", "users", "--entity-name", "alice", "--alter", "--add-config")
            await run(t.CONFIGS, *user, "SCRAM-SHA-256=[password=secret-1]")
            await run(t.CONFIGS, *user, "producer_byte_rate=1000000")
            await until(lambda: all("alice" in each.parts.login.users.all() for each in brokers))
            await until(lambda: all(each.parts.quotas.throttling for each in brokers))
            # One that comes later reads what is there, and removals reach it, too.
            late = broker_of(4, where)
            await late.start()
            everyone = [*brokers, late]
            try:
                assert not may_write(late, "alice")
                assert "alice" in late.parts.login.users.all()
                removed = ("--remove", "--force", "--topic", "fl")
                await run(t.ACLS, *removed, "--resource-pattern-type", "prefixed")
                await until(lambda: all(may_write(each, "alice") for each in everyone))
            finally:
                await late.stop(hands_over=False)

    asyncio.run(scenario())
