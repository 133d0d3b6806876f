"""Real clients log in, and their passwords stand in no log."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer
from rig.broker import ottla
from rig.nodes import Node
from rig.probe import free_port
from rig.secret_search import register
from rig.tools import CONFIGS, TOPICS, Tools

from ottla.operations.certificates import make_development_files

ALICE, PASSWORD = "alice", "correct-horse-battery"
WRONG = "not-the-password"
register(PASSWORD)
register(WRONG)
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

    def python_client(self, mechanism: str) -> dict[str, Any]:
        """The settings of kafka-python and aiokafka."""
        return {
            "bootstrap_servers": f"127.0.0.1:{self.sasl_port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": ALICE,
            "sasl_plain_password": PASSWORD,
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


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_logs_in_with_scram(broker: Secured, mechanism: str) -> None:
    """What it produces comes back to it."""
    settings = broker.python_client(mechanism)
    topic = f"python-{mechanism}"
    producer = KafkaProducer(**settings)
    assert producer.send(topic, b"one").get(120).offset == 0
    producer.close()
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=120_000, **settings
    )
    assert next(iter(consumer)).value == b"one"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in_with_scram(broker: Secured, mechanism: str) -> None:
    """It sends a record, and is refused with a wrong password."""

    async def main() -> None:
        settings = broker.python_client(mechanism)
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        try:
            sent = await producer.send_and_wait(f"aio-{mechanism}", b"one")
            assert sent.offset == 0
        finally:
            await producer.stop()
        wrong = AIOKafkaProducer(**{**settings, "sasl_plain_password": WRONG})
        with pytest.raises(KafkaConnectionError):
            await wrong.start()
        await wrong.stop()

    asyncio.run(main())


def test_librdkafka_logs_in_again_before_its_session_ends() -> None:
    """Sessions of two seconds, records for six: none is lost, and no connection ends."""
    with secured(connections_max_reauth_ms="2000") as short:
        producer = Producer(short.client("SCRAM-SHA-256"))
        failed: list[object] = []
        until_s = time.monotonic() + 6
        while time.monotonic() < until_s:
            producer.produce(
                "again", b"x", on_delivery=lambda error, _: failed.append(error) if error else None
            )
            producer.poll(0.1)
        assert producer.flush(120) == 0
        assert failed == []
        assert "is over" not in short.node.process.log.read_text()


def test_kafka_configs_makes_a_user_who_then_uses_javas_tools(
    broker: Secured, jvm: Tools, tmp_path: Path
) -> None:
    """The password is hashed by the tool; the user lists topics, and is refused without it."""
    bob = ("--entity-type", "users", "--entity-name", "bob")
    made = jvm.run(
        CONFIGS,
        *("--bootstrap-server", broker.node.bootstrap, "--alter", *bob),
        *("--add-config", f"SCRAM-SHA-512=[iterations=8192,password={PASSWORD}]"),
    )
    assert "Completed updating config for user bob" in made.out
    described = jvm.run(CONFIGS, "--bootstrap-server", broker.node.bootstrap, "--describe", *bob)
    assert "SCRAM-SHA-512=iterations=8192" in described.out
    file = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    words = ("--bootstrap-server", f"127.0.0.1:{broker.sasl_port}", "--command-config", str(file))
    for password, exit_code in ((PASSWORD, 0), (WRONG, 1)):
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={module} required username="bob" password="{password}";\n'
        )
        ran = jvm.run(TOPICS, *words, "--list")
        assert ran.exit_code == exit_code, ran


def test_plain_and_scram_over_tls_make_the_user_and_not_the_certificate_the_principal(
    tmp_path: Path,
) -> None:
    """Alice may use the cluster, whatever else there is."""
    files = make_development_files(tmp_path / "certs", [], "other", datetime.now(UTC))
    with secured(
        sasl_enabled_mechanisms="SCRAM-SHA-256,PLAIN",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_SSL",
        ssl_keystore_type="PEM",
        ssl_keystore_location=str(files.server),
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS;User:alice",
    ) as broker:
        for mechanism in ("SCRAM-SHA-256", "PLAIN"):
            client = broker.client(mechanism)
            client["bootstrap.servers"] = f"localhost:{broker.sasl_port}"
            client |= {"security.protocol": "SASL_SSL", "ssl.ca.location": str(files.authority)}
            producer = Producer(client)
            producer.produce(f"tls-{mechanism}", b"one")
            assert producer.flush(120) == 0
            assert f"tls-{mechanism}" in AdminClient(client).list_topics(timeout=60).topics
