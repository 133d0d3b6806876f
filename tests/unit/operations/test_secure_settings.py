"""What `--secure` sets, what stays as it was given, and what contradicts it."""

import ssl

import pytest

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings, is_secret
from ottla.operations.secure.login import ClientLogin
from ottla.operations.secure.settings import broker_login, certificate_hosts, secured

STORES = {"ssl.keystore.location": "/d/server.pem", "ssl.truststore.location": "/d/ca.pem"}
GIVEN = {"listeners": "SASL_SSL://127.0.0.1:9092"}


def added(**more):
    return secured({**GIVEN, **{n.replace("_", "."): v for n, v in more.items()}}, STORES)


def test_a_broker_gets_tls_logins_and_acls():
    """The whole of it."""
    assert added() == {
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/d/server.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/d/ca.pem",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "allow.everyone.if.no.acl.found": "false",
    }


def test_brokers_of_a_cluster_get_a_login_unless_they_are_given_one():
    """By a setting that is nowhere shown."""
    own = {"sasl.jaas.config": "given"}
    assert set(broker_login({}, "pass")) == {
        "sasl.mechanism.inter.broker.protocol",
        "sasl.jaas.config",
    }
    assert set(broker_login(own, "pass")) == {"sasl.mechanism.inter.broker.protocol"}
    assert is_secret("sasl.jaas.config")
    assert BrokerSettings(broker_login({}, "pass")).text("sasl.jaas.config").endswith('"pass";')


def test_what_is_given_and_no_contradiction_stays():
    """More listeners, mechanisms, super users; another listener for brokers."""
    given = {
        "listeners": "INSIDE://:9094,SASL_SSL://:9092,SSL://:9093",
        "listener.security.protocol.map": "INSIDE:SASL_SSL,SASL_SSL:SASL_SSL,SSL:SSL",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "super.users": "User:root;User:admin",
        "listener.name.ssl.ssl.client.auth": "required",
        "num.partitions": "3",
    }
    extra = secured(given, STORES)
    assert extra.keys().isdisjoint(given)
    # Kafka takes one of the two.
    assert "security.inter.broker.protocol" not in extra


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("listeners", "PLAINTEXT://:9092", "PLAINTEXT is a PLAINTEXT listener"),
        ("listeners", "SASL_SSL://:1,SASL_PLAINTEXT://:2", "SASL_PLAINTEXT is a SASL_PLAINTEXT"),
        ("listeners", "SSL://:9092", "admin logs in on a SASL_SSL one"),
        ("listeners", "SASL_SSL://:1,SSL://:2", "listener.name.ssl.ssl.client.auth=required"),
        ("audit.log.enable", "false", "what was denied and changed"),
        ("sasl.enabled.mechanisms", "PLAIN", "admin logs in by SCRAM-SHA-512: add it"),
        ("listener.name.sasl_ssl.sasl.enabled.mechanisms", "PLAIN", "add it"),
        ("authorizer.class.name", "", "without it everything is allowed"),
        ("allow.everyone.if.no.acl.found", "true", "opens what no ACL protects"),
        ("super.users", "User:root", "add User:admin"),
        ("super.users", "User:admin;User:ANONYMOUS", "each client that does not log in"),
        ("security.inter.broker.protocol", "PLAINTEXT", "PLAINTEXT is without TLS"),
        ("security.inter.broker.protocol", "SASL_PLAINTEXT", "leave it out, or set SASL_SSL"),
        ("ssl.endpoint.identification.algorithm", "", "certificate of any other machine"),
        ("listener.name.sasl_ssl.ssl.endpoint.identification.algorithm", "", "any other machine"),
        ("ssl.keystore.location", "/mine.pem", "ca.pem and server.pem, without a ca.key"),
        ("listener.name.sasl_ssl.ssl.truststore.type", "PEM", "without a ca.key"),
        ("ssl.key.password", "x", "without a ca.key"),
    ],
)
def test_a_contradiction_is_named_with_both_ways_out(name, text, words):
    """Nothing is opened by a setting that was left over from another start."""
    with pytest.raises(OttlaError) as refused:
        secured({**GIVEN, name: text}, STORES)
    assert words in refused.value.message
    assert "contradicts --secure" in refused.value.message
    assert "leave --secure out" in refused.value.message


def test_a_certificate_is_for_the_names_that_clients_are_given():
    """Those advertised, and those listened on; every interface has no name."""
    settings = BrokerSettings(
        {
            "listeners": "SASL_SSL://0.0.0.0:9092,IN://10.0.0.7:9094",
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,IN:SASL_SSL",
            "advertised.listeners": "SASL_SSL://broker.example:19092,IN://10.0.0.7:9094",
        }
    )
    assert certificate_hosts(settings) == ["broker.example", "10.0.0.7"]


def test_a_name_that_no_certificate_can_have_is_refused():
    """It ended in a traceback of the library that makes certificates."""
    settings = BrokerSettings({"listeners": "SASL_SSL://bücher.example:9092"})
    with pytest.raises(OttlaError, match=r"bücher\.example cannot stand in a certificate"):
        certificate_hosts(settings)


def test_a_login_shows_no_password_and_is_read_by_our_own_client():
    """In Java's words, which commands and clients read from a file."""
    login = ClientLogin("admin", "the-password", "/d/ca.pem")
    assert "the-password" not in repr(login)
    assert login.for_java() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="admin" password="the-password";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/d/ca.pem",
    }
    assert login.for_librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": "the-password",
        "ssl.ca.location": "/d/ca.pem",
    }
    with pytest.raises(ssl.SSLError):
        ClientLogin("admin", "x", "-----BEGIN CERTIFICATE-----\n-----END").for_kafka_python()
