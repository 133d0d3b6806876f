"""Real clients log in, and their passwords stand in no log."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from rig.broker import ottla
from rig.nodes import Node
from rig.probe import free_port

ALICE, PASSWORD = "alice", "correct-horse-battery"
WRONG = "not-the-password"
MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}


@dataclass
class Secured:
    """A broker with a listener in the clear, for administration, and one with SASL."""

    node: Node
    sasl_port: int

    def client(
        self, mechanism: str, password: str = PASSWORD, user: str = ALICE
    ) -> dict[str, object]:
        """The settings of a client of librdkafka."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.sasl_port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
        }


@contextlib.contextmanager
def secured(**settings: str) -> Iterator[Secured]:
    """A broker that knows alice; no secret is in its log at the end."""
    port, sasl_port = free_port(), free_port()
    chosen = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    with ottla(settings=chosen, port=port) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        info = [ScramCredentialInfo(mechanism, 4096) for mechanism in MECHANISMS.values()]
        upsertions = [UserScramCredentialUpsertion(ALICE, each, PASSWORD.encode()) for each in info]
        for upsertion in upsertions:
            for future in admin.alter_user_scram_credentials([upsertion]).values():
                future.result(120)
        yield Secured(node, sasl_port)
        log = node.process.log.read_text()
    assert PASSWORD not in log
    assert WRONG not in log


@pytest.fixture(scope="module")
def broker() -> Iterator[Secured]:
    with secured() as running:
        yield running


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_logs_in_with_scram(broker: Secured, mechanism: str) -> None:
    """What it produces it consumes, as a member of a group."""
    settings, topic = broker.client(mechanism), f"flights-{mechanism}"
    producer = Producer(settings)
    producer.produce(topic, b"one")
    assert producer.flush(120) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        assert _next_value(consumer) == b"one"
    finally:
        consumer.close()


def _next_value(consumer: Consumer) -> bytes | None:
    for _ in range(240):
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            value: bytes | None = message.value()
            return value
    raise AssertionError("no record came")


@pytest.mark.parametrize(("user", "password"), [(ALICE, WRONG), ("mallory", WRONG)])
def test_librdkafka_is_refused_without_the_password(
    broker: Secured, user: str, password: str
) -> None:
    """With the error of a failed login, whether the user exists or not."""
    errors: list[KafkaError] = []
    settings = broker.client("SCRAM-SHA-256", password, user)
    admin = AdminClient({**settings, "error_cb": errors.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5)
    admin.poll(1)
    assert KafkaError._AUTHENTICATION in [each.code() for each in errors]
