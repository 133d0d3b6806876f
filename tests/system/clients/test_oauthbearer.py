"""Real clients log in with tokens of an issuer, over TLS; no token stands in the broker's log."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider
from rig.broker import ottla
from rig.consumer import close, read
from rig.issuer import AUDIENCE, Issuer, serving
from rig.nodes import Node
from rig.probe import free_port
from rig.secret_search import register
from rig.tools import Tools

from ottla.client import ClientError, sync
from ottla.client.ranges import RangeClient
from ottla.operations.certificates import DevelopmentFiles, make_development_files
from tests.system.clients.test_java_clients import (
    consumer_of,
    items,
    poll,
    producer_of,
    properties,
    record,
)

SECRET = "the-secret-of-alices-program"
register(SECRET)
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass
class Served:
    """A broker on whose SASL_SSL listener only tokens of `issuer` are accepted."""

    node: Node
    issuer: Issuer
    files: DevelopmentFiles
    port: int

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    def librdkafka(self, token: Any = None, **more: object) -> dict[str, object]:
        """The settings of a client that is given its tokens by a callback."""
        settings: dict[str, object] = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.files.authority),
            "sasl.mechanism": "OAUTHBEARER",
            "log_level": 0,
            **more,
        }
        if token is not None:
            settings["oauth_cb"] = token
        return settings

    def callback(self, lifetime_s: float = 600.0, **claims: object) -> Any:
        """Gives librdkafka a token of alice, and says when it expires."""

        def give(_config: str) -> tuple[str, float]:
            now_s = time.time()
            return (
                self.issuer.token("alice", now_s, exp=now_s + lifetime_s, **claims),
                now_s + lifetime_s,
            )

        return give

    def java(self) -> dict[str, str]:
        """The settings of Java's clients that ask the issuer themselves."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.files.authority),
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.oauthbearer.token.endpoint.url": self.issuer.token_url,
            "sasl.jaas.config": (
                f'{MODULE} required clientId="alice" clientSecret="{SECRET}" scope="kafka" '
                f'ssl.truststore.type="PEM" ssl.truststore.location="{self.files.authority}";'
            ),
        }


@contextlib.contextmanager
def serve(folder: Path, **settings: str) -> Iterator[Served]:
    """Alice may do everything; no secret and no token is in the log at the end."""
    files = make_development_files(folder / "certs", [], "alice", datetime.now(UTC))
    port, sasl_port = free_port(), free_port()
    issuer = Issuer(clients={"alice": SECRET})
    listener = "listener.name.sasl_ssl.oauthbearer"
    with serving(issuer, files.server):
        chosen = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{sasl_port}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(files.server),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.allowed.urls": issuer.keys_url,
            f"{listener}.sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
            f"{listener}.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{listener}.sasl.oauthbearer.expected.issuer": issuer.name,
            f"{listener}.sasl.jaas.config": (
                f'{MODULE} required ssl.truststore.type="PEM" '
                f'ssl.truststore.location="{files.authority}";'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        with ottla(settings=chosen, port=port) as node:
            yield Served(node, issuer, files, sasl_port)
            log = node.process.log.read_text()
    assert SECRET not in log
    # How each part of a token begins.
    assert "eyJ" not in log


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("oauthbearer")) as running:
        yield running


def test_librdkafka_produces_consumes_in_a_group_and_administers(served: Served) -> None:
    """With tokens that its program gives."""
    settings = served.librdkafka(served.callback())
    admin = AdminClient(settings)
    admin.poll(0)
    for future in admin.create_topics([NewTopic("rd", 2, 1)]).values():
        future.result(120)
    producer = Producer(settings)
    for number in range(100):
        producer.produce("rd", b"%d" % number, partition=0)
    assert producer.flush(120) == 0
    consumer = Consumer({**settings, "group.id": "rd", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rd"])
    try:
        assert [each.value() for each in read(consumer, 100)] == [b"%d" % n for n in range(100)]
    finally:
        close(consumer)


def test_librdkafka_asks_the_issuer_itself_and_has_transactions(served: Served) -> None:
    """Its method `oidc`: a token endpoint with client id and secret."""
    settings = served.librdkafka(
        **{
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": served.issuer.token_url,
            "sasl.oauthbearer.client.id": "alice",
            "sasl.oauthbearer.client.secret": SECRET,
            "https.ca.location": str(served.files.authority),
        }
    )
    producer = Producer({**settings, "transactional.id": "rd"})
    producer.init_transactions(120)
    for outcome in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce("rd-tx", outcome.__name__.encode())
        outcome(120)
    consumer = Consumer({**settings, "group.id": "rd-tx", "auto.offset.reset": "earliest"})
    consumer.subscribe(["rd-tx"])
    try:
        assert [each.value() for each in read(consumer, 1)] == [b"commit_transaction"]
    finally:
        close(consumer)


def test_librdkafka_is_refused_with_a_token_for_others(served: Served) -> None:
    """It reports a failed login; the broker's log has the cause."""
    errors: list[KafkaError] = []
    settings = served.librdkafka(served.callback(aud="billing"))
    admin = AdminClient({**settings, "error_cb": errors.append})
    for _ in range(1200):
        admin.poll(0.1)
        if any("invalid_token" in each.str() for each in errors):
            break
    assert KafkaError._AUTHENTICATION in [each.code() for each in errors]
    assert "its token is for audience 'billing'" in served.node.process.log.read_text()


def test_librdkafka_logs_in_again_before_its_token_expires(served: Served) -> None:
    """Tokens of two seconds, records for four: none is lost."""
    producer = Producer(served.librdkafka(served.callback(lifetime_s=2.0)))
    failed: list[object] = []
    until_s = time.monotonic() + 4
    while time.monotonic() < until_s:
        producer.produce(
            "again", b"x", on_delivery=lambda error, _: failed.append(error) if error else None
        )
        producer.poll(0.1)
    assert producer.flush(120) == 0
    assert failed == []


def test_a_new_key_of_the_issuer_is_accepted_at_once(served: Served) -> None:
    """The first token that it signs has the broker read the keys again."""
    served.issuer.rotate()
    topics = AdminClient(served.librdkafka(served.callback())).list_topics(timeout=120).topics
    assert isinstance(topics, dict)
    assert served.issuer.requests.count("/keys") >= 2


class Tokens(AbstractTokenProvider):
    """kafka-python's way to get a token."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def token(self) -> str:
        return self._served.issuer.token("alice")


class AioTokens(AioTokenProvider):
    """aiokafka's way to get a token."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def token(self) -> str:
        return self._served.issuer.token("alice")


def test_kafka_python_produces_and_consumes_in_a_group(served: Served) -> None:
    """What it has sent comes back to it."""
    settings: dict[str, Any] = {
        "bootstrap_servers": served.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(served.files.authority),
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(served),
    }
    producer = KafkaProducer(**settings)
    assert producer.send("python", b"one").get(120).offset == 0
    producer.close()
    consumer = KafkaConsumer(
        "python",
        group_id="python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=120_000,
        **settings,
    )
    assert next(iter(consumer)).value == b"one"
    consumer.close()


def test_aiokafka_produces_and_consumes_in_a_group(served: Served) -> None:
    """Its tokens come from a coroutine."""

    async def main() -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": served.bootstrap,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(served.files.authority)),
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": AioTokens(served),
        }
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("aio", b"one")
        consumer = AIOKafkaConsumer("aio", group_id="aio", auto_offset_reset="earliest", **settings)
        async with consumer:
            assert (await consumer.getone()).value == b"one"

    asyncio.run(main())


def test_javas_clients_ask_the_issuer_themselves(served: Served, jvm: Tools) -> None:
    """Transactions, a group, administration; a wrong secret is refused by the issuer."""
    system = jvm.jvm.java.lang.System
    system.setProperty(ALLOWED, served.issuer.token_url)
    settings = {name.replace(".", "_"): value for name, value in served.java().items()}
    admin = jvm.jvm.org.apache.kafka.clients.admin.Admin.create(
        properties(jvm, bootstrap_servers=served.bootstrap, **settings)
    )
    new = jvm.jvm.org.apache.kafka.clients.admin.NewTopic("java", 1, 1)
    admin.createTopics(jvm.jvm.java.util.List.of(new)).all().get()
    assert "java" in set(items(admin.listTopics().names().get()))
    admin.close()
    producer = producer_of(jvm, served.bootstrap, transactional_id="java", **settings)
    producer.initTransactions()
    for outcome in ("abort", "commit"):
        producer.beginTransaction()
        producer.send(record(jvm, "java", outcome)).get()
        getattr(producer, f"{outcome}Transaction")()
    producer.close()
    consumer = consumer_of(
        jvm, served.bootstrap, "java", isolation_level="read_committed", **settings
    )
    consumer.subscribe(jvm.jvm.java.util.List.of("java"))
    assert [each.value() for each in poll(jvm, consumer, 1)] == ["commit"]
    consumer.close()


def test_javas_clients_take_a_token_from_a_file(served: Served, jvm: Tools, tmp_path: Path) -> None:
    """As in a pod whose platform keeps it fresh."""
    file = tmp_path / "token"
    file.write_text(served.issuer.token("alice"))
    url = f"file:{file}"
    jvm.jvm.java.lang.System.setProperty(ALLOWED, url)
    settings = {name.replace(".", "_"): value for name, value in served.java().items()}
    settings["sasl_oauthbearer_token_endpoint_url"] = url
    settings["sasl_jaas_config"] = f"{MODULE} required;"
    admin = jvm.jvm.org.apache.kafka.clients.admin.Admin.create(
        properties(jvm, bootstrap_servers=served.bootstrap, **settings)
    )
    assert len(items(admin.describeCluster().nodes().get())) == 1
    admin.close()


def test_ottlas_own_clients_ask_the_issuer_themselves(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's settings in the file that OTTLA_CONFIG names; without its permission no address."""
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in served.java().items()))
    monkeypatch.setenv("OTTLA_CONFIG", str(config))
    with pytest.raises(ClientError, match="OTTLA_OAUTHBEARER_ALLOWED_URLS"):
        sync.Admin(served.bootstrap)
    monkeypatch.setenv("OTTLA_OAUTHBEARER_ALLOWED_URLS", f"https://x/, {served.issuer.token_url}")
    asked = served.issuer.requests.count("/token")
    with sync.Admin(served.bootstrap) as admin:
        admin.topics.create("own", partitions=1)
    with sync.Producer(served.bootstrap) as producer:
        for number in range(10):
            producer.send("own", b"%d" % number)
    with sync.Consumer(served.bootstrap, group_id="own") as consumer:
        consumer.subscribe("own")
        values: list[bytes | None] = []
        while len(values) < 10:
            values += [each.value for each in consumer.poll()]
    assert values == [b"%d" % number for number in range(10)]
    with RangeClient(served.bootstrap) as client:
        assert client.high_watermarks("own") == {0: 10}
    # One token for all of them.
    assert served.issuer.requests.count("/token") == asked + 1
