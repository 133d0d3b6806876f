"""Real clients over TLS and a login, with the ACLs that Kafka asks for and no others.

Each operation is tried without the ACL first: the library's error is that of Kafka's code.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from rig.secured import PLAIN, Secured, secured
from rig.tools import Tools

from tests.system.clients.secured_clients import Aiokafka, Client, Java, KafkaPython, Librdkafka

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 29, 30, 31, 53
USERS = ("ann", "ben", "cas", "dan", "eve")


@pytest.fixture(scope="module")
def broker() -> Iterator[Secured]:
    passwords = {name: f"the-secret-of-{name}" for name in USERS}
    on_kafka = os.environ.get("OTTLA_TEST_BROKER") == "kafka"
    with secured(passwords, on_kafka=on_kafka) as running:
        yield running
        log = running.node.process.log.read_text()
    if not on_kafka:
        assert [one for one in passwords.values() if one in log] == []


def denied(client: Client, work: Callable[[], None]) -> int:
    """The code with which the work is denied."""
    try:
        work()
    except Exception as error:  # noqa: BLE001  # Of whichever library.
        return client.code(error)
    raise AssertionError("it was allowed")


def records_and_groups(broker: Secured, client: Client, user: str, first: int = TOPIC) -> None:
    """Produce idempotently, read as a member, commit a transaction: rule by rule.

    `first` is the code for a client that may write nothing at all.
    """
    name = user.removeprefix("CN=")
    topic, group = f"topic-{name}", f"group-{name}"
    broker.create_topic(topic)
    assert denied(client, partial(client.produce, topic)) == first
    broker.allow(user, "write", f"topic:{topic}")
    client.produce(topic)
    for protocol in client.protocols:
        read = partial(client.read, topic, f"{group}-{protocol}", protocol)
        assert denied(client, read) == GROUP
        broker.allow(user, "read", f"group:{group}-{protocol}")
        assert denied(client, read) == TOPIC
        broker.allow(user, "read", f"topic:{topic}")
        read()
        broker.withdraw(user, "read", f"topic:{topic}")
    broker.allow(user, "read", f"topic:{topic}")

    transact = partial(client.transact, topic, f"copier-{name}", f"{group}-classic")
    assert denied(client, transact) == TRANSACTIONAL_ID
    broker.allow(user, "write", f"transactional-id:copier-{name}")
    transact()


def administration(
    broker: Secured, client: Client, user: str, *, acls: bool = True, users: bool = True
) -> None:
    """Create a topic, list ACLs, look at users: rule by rule.

    `users`: whether the library outlives a request about users that is denied.
    """
    new = f"new-{user}"
    assert denied(client, partial(client.create, new)) == TOPIC
    broker.allow(user, "create", "topic:new-", prefixed=True)
    client.create(new)
    if acls:
        assert denied(client, client.acls) == CLUSTER
        if users:
            assert denied(client, client.users) == CLUSTER
        broker.allow(user, "describe", "cluster")
        client.acls()
        client.users()


def test_librdkafka_over_tls_and_scram(broker: Secured) -> None:
    """Both protocols of groups. The library aborts its process where users may not be described."""
    client = Librdkafka.logs_in(broker, "ann")
    records_and_groups(broker, client, "ann")
    administration(broker, client, "ann", users=False)


def test_librdkafka_with_a_certificate(broker: Secured) -> None:
    """Its principal is the name in the certificate."""
    records_and_groups(broker, Librdkafka.with_certificate(broker), "CN=carol")


def test_kafka_python_over_tls_and_plain(broker: Secured) -> None:
    client = KafkaPython(broker, "ben", PLAIN)
    records_and_groups(broker, client, "ben")
    administration(broker, client, "ben")


def test_aiokafka_over_tls_and_scram(broker: Secured) -> None:
    """It has no calls for ACLs and users; it asks for a producer id before it asks for topics."""
    client = Aiokafka(broker, "cas")
    records_and_groups(broker, client, "cas", CLUSTER)
    administration(broker, client, "cas", acls=False)


def test_java_over_tls_and_scram(broker: Secured, jvm: Tools) -> None:
    """Both protocols of groups."""
    client = Java(broker, jvm, "dan")
    records_and_groups(broker, client, "dan")
    administration(broker, client, "dan")
