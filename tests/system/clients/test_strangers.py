"""Clients that want TLS or SASL of a plaintext listener: what they are told, and the log."""

import time

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from rig.broker import ottla
from rig.nodes import Node

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "user",
    "sasl.password": "secret",
}


def errors_of(node: Node, settings: dict[str, str], wanted: int) -> list[KafkaError]:
    """The first errors that a producer reports which may reconnect at once, and does."""
    found: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "error_cb": found.append,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 10,
            "log_level": 0,
            **settings,
        }
    )
    deadline_s = time.monotonic() + 120
    while len(found) < wanted and time.monotonic() < deadline_s:
        producer.poll(0.1)
    return found


def lines_with(node: Node, word: str) -> list[str]:
    return [line for line in node.process.log_tail().splitlines() if word in line]


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"security.protocol": "SSL"}, "TLS handshake"), (SASL, "SASL")],
    ids=["TLS", "SASL"],
)
def test_a_client_that_wants_more_than_plaintext_leaves_one_line(
    settings: dict[str, str], word: str
) -> None:
    """However often it comes back; the line says what to set in the client."""
    with ottla() as node:
        assert errors_of(node, settings, wanted=3)
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0, **settings})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=3)
        (line,) = lines_with(node, word)
        assert "security.protocol=PLAINTEXT" in line
        assert "secret" not in line
