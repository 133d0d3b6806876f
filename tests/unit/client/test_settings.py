"""Settings of clients: a name that no client has is refused, and so is TLS that is not switched on.

Names: Apache Kafka 4.3, https://kafka.apache.org/documentation/#configuration (producer, consumer,
admin); librdkafka's CONFIGURATION.md.
"""

import logging
from pathlib import Path

import pytest

from ottla.client import ClientError
from ottla.client.common.settings import _KNOWN, check_names
from ottla.client.connection.security import read_config, security_by, security_of

LOGIN = {
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "pale-violet-17",
}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("security.protocl", "security.protocol"),
        ("security_protocol", "security.protocol"),
        ("Security.Protocol", "security.protocol"),
        ("sasl.mechansim", "sasl.mechanism"),
        ("sasl.jaas.conf", "sasl.jaas.config"),
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("group_id", "group.id"),
        ("ack", "acks"),
    ],
)
def test_a_mistyped_name_is_refused_with_the_nearest_one(
    name: str, nearest: str, tmp_path: Path
) -> None:
    """From a file, which the error names, and from a program; the value is never shown."""
    path = tmp_path / "client.properties"
    path.write_text(f"{name}=pale-violet-17\n")
    for refuse in (
        lambda: security_of({name: "pale-violet-17"}),
        lambda: security_by(str(path)),
        lambda: read_config(str(path)),
    ):
        with pytest.raises(ClientError, match=f"did you mean {nearest}") as refused:
            refuse()
        assert "pale-violet" not in refused.value.message
    assert refused.value.message.startswith(f"{path}: {name} ")


def test_one_letter_less_is_never_accepted() -> None:
    """Whichever setting it is: no mistake of one letter is the name of another setting."""
    for name in _KNOWN - {"sasl.mechanisms", "ssl.providers", "security.providers"}:
        for left_out in range(len(name)):
            mistyped = name[:left_out] + name[left_out + 1 :]
            if mistyped.startswith("ssl.provider"):
                continue
            with pytest.raises(ClientError):
                check_names({mistyped: "1"})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LOGIN, "the default: set security.protocol to SASL_SSL or SASL_PLAINTEXT"),
        ({"security.protocol": "SSL", **LOGIN}, "security.protocol=SSL: set"),
        ({"ssl.truststore.location": "ca.pem"}, "the default: set security.protocol to SSL or"),
        (
            {"security.protocol": "SASL_PLAINTEXT", **LOGIN, "ssl.truststore.type": "PEM"},
            "ssl.truststore.type has no effect with security.protocol=SASL_PLAINTEXT",
        ),
        ({"security.protocol": "TLS"}, "security.protocol=TLS is not there"),
    ],
)
def test_tls_and_logins_that_are_not_switched_on_are_refused(
    config: dict[str, str], words: str
) -> None:
    """A client would connect without what its settings describe."""
    with pytest.raises(ClientError, match=words):
        security_of(config)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("ssl.ca.location", r"ssl\.truststore\.location"),
        ("ssl.certificate.location", r"ssl\.keystore\.location"),
        ("enable.ssl.certificate.verification", "always verified"),
    ],
)
def test_a_setting_of_trust_that_would_have_no_effect_is_refused_with_its_equivalent(
    name: str, instead: str
) -> None:
    """Librdkafka's names of TLS: without them another broker would be trusted."""
    with pytest.raises(ClientError, match=instead):
        security_of({"security.protocol": "SSL", name: "x"})


def test_settings_of_other_clients_are_accepted_and_noted_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One file serves Java's tools, librdkafka and Ottla."""
    config = {
        "bootstrap.servers": "broker:9092",
        "group.id": "audit",
        "acks": "all",
        "queue.buffering.max.ms": "5",
        "schema.registry.url": "https://registry",
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.login.callback.handler.class": "Handler",
        **LOGIN,
    }
    with caplog.at_level(logging.INFO, "ottla.client"):
        for _ in range(2):
            assert security_of(config).protocol == "SASL_PLAINTEXT"
    (line,) = caplog.messages
    assert "acks, bootstrap.servers, group.id" in line
    assert "sasl.mechanism" not in line


def test_a_line_that_may_be_a_secret_is_not_shown(tmp_path: Path) -> None:
    """A key or a password that was broken into lines: each line becomes a name."""
    path = tmp_path / "client.properties"
    path.write_text("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nsecurity.protocol=SSL\n")
    with pytest.raises(ClientError, match="not shown here") as refused:
        read_config(str(path))
    assert "MIIE" not in refused.value.message
