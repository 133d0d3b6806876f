"""Real clients over TLS, with and without certificates of their own, unmodified."""

import asyncio
import contextlib
import socket
import ssl
import threading
from datetime import UTC, datetime

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from rig.broker import ottla
from rig.consumer import close, read
from rig.probe import free_port
from rig.secret_search import register

from ottla.client import AdminOptions, sync
from ottla.client.common.errors import ConnectionFailed
from ottla.client.ranges import RangeClient
from ottla.operations.certificates import make_development_files
from tests.system.clients.test_java_clients import consumer_of, items, producer_of, record

NOW = datetime.now(UTC)
SUPER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


PASSWORD = "not-in-any-log"
register(PASSWORD)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{PLAIN} required user_bob="{PASSWORD}";'


class Served:
    """A broker with three ways in: plaintext, TLS, and TLS with certificates of clients.

    On the third one CN=alice may do everything; on the others ANONYMOUS may, too.
    """

    def __init__(self, node, files, ports):
        self.node = node
        self.files = files
        self.tls, self.mutual, self.sasl = (f"localhost:{port}" for port in ports)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    files = make_development_files(tmp_path_factory.mktemp("tls") / "certs", [], "alice", NOW)
    port, tls, mutual, sasl = (free_port() for _ in range(4))
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls},"
        f"MUTUAL://127.0.0.1:{mutual},SASL_SSL://127.0.0.1:{sasl}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,SASL_SSL:SASL_SSL"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "authorizer.class.name": SUPER,
        "super.users": "User:CN=alice;User:ANONYMOUS;User:bob",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
    }
    with ottla(settings=settings, port=port) as node:
        yield Served(node, files, (tls, mutual, sasl))


def librdkafka(served, *, own):
    settings = {
        "bootstrap.servers": served.mutual if own else served.tls,
        "security.protocol": "SSL",
        "ssl.ca.location": str(served.files.authority),
        "log_level": 0,
    }
    if own:
        settings["ssl.certificate.location"] = settings["ssl.key.location"] = str(
            served.files.client
        )
    return settings


@pytest.mark.parametrize("own", [False, True])
def test_librdkafka_produces_and_consumes_in_a_group(served, own):
    """Also with a certificate of its own."""
    topic = f"librdkafka-{own}"
    producer = Producer(librdkafka(served, own=own))
    for number in range(100):
        producer.produce(topic, b"%d" % number * 1000)
    assert producer.flush(120) == 0
    consumer = Consumer(
        {**librdkafka(served, own=own), "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        values = [message.value() for message in read(consumer, 100)]
    finally:
        close(consumer)
    assert values == [b"%d" % number * 1000 for number in range(100)]


@pytest.mark.parametrize("own", [False, True])
def test_kafka_python_produces_and_consumes(served, own):
    """Its TLS is Python's own."""
    settings = {
        "bootstrap_servers": served.mutual if own else served.tls,
        "security_protocol": "SSL",
        "ssl_cafile": str(served.files.authority),
        "ssl_certfile": str(served.files.client) if own else None,
    }
    topic = f"kafka-python-{own}"
    producer = KafkaProducer(**settings)
    for number in range(10):
        producer.send(topic, b"%d" % number)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", **settings)
    assert [next(consumer).value for _ in range(10)] == [b"%d" % n for n in range(10)]
    consumer.close()


def test_aiokafka_produces_and_consumes(served):
    """With a certificate of its own."""
    context = ssl.create_default_context(cafile=str(served.files.authority))
    context.load_cert_chain(served.files.client)
    settings = {
        "bootstrap_servers": served.mutual,
        "security_protocol": "SSL",
        "ssl_context": context,
    }

    async def scenario():
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait("aiokafka", b"hello")
        consumer = AIOKafkaConsumer("aiokafka", auto_offset_reset="earliest", **settings)
        async with consumer:
            assert (await consumer.getone()).value == b"hello"

    asyncio.run(scenario())


def test_java_clients_produce_and_consume_with_pem(served, jvm):
    """The file of key and chain, and the authority's, are what Kafka's clients read, too."""
    settings = {
        "security_protocol": "SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": served.files.authority,
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": served.files.client,
    }
    producer = producer_of(jvm, served.mutual, **settings)
    producer.send(record(jvm, "java-tls", "hello")).get()
    producer.close()
    consumer = consumer_of(jvm, served.mutual, "java-tls", **settings)
    consumer.subscribe(jvm.jvm.java.util.List.of("java-tls"))
    found = []
    while not found:
        found = [
            each.value() for each in items(consumer.poll(jvm.jvm.java.time.Duration.ofSeconds(1)))
        ]
    consumer.close()
    assert found == ["hello"]


@pytest.fixture
def configured(served, monkeypatch):
    monkeypatch.setenv("OTTLA_CONFIG", str(served.files.client_properties))


def test_our_client_takes_kafkas_properties(served, configured):
    """Producer and consumer, and the blocking connection of loads."""
    with sync.Producer(served.mutual) as producer:
        producer.send("ours", b"hello")
        producer.flush()
    with contextlib.closing(RangeClient(served.mutual)) as reader:
        assert reader.high_watermarks("ours") == {0: 1}


def test_passwords_are_sent_over_tls(served, tmp_path, monkeypatch):
    """SASL_SSL: librdkafka writes, and our client reads, by the same login."""
    producer = Producer(
        {
            **librdkafka(served, own=False),
            "bootstrap.servers": served.sasl,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": PASSWORD,
        }
    )
    producer.produce("both", b"x")
    assert producer.flush(120) == 0
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=bob\n"
        f"sasl.password={PASSWORD}\nssl.truststore.location={served.files.authority}\n"
    )
    monkeypatch.setenv("OTTLA_CONFIG", str(config))
    with contextlib.closing(RangeClient(served.sasl)) as reader:
        assert reader.high_watermarks("both") == {0: 1}


def test_our_client_explains_an_unknown_authority(served, tmp_path, monkeypatch):
    """Before it sends anything."""
    others = make_development_files(tmp_path / "others", [], "alice", NOW)
    monkeypatch.setenv("OTTLA_CONFIG", str(others.client_properties))
    with (
        pytest.raises(ConnectionFailed, match=r"ssl\.truststore\.location"),
        RangeClient(served.tls, retry_timeout_ms=3_000) as reader,
    ):
        reader.topic_names()


def test_our_client_says_that_a_port_does_not_speak_tls(served, configured):
    """The one that blocks, and the one of a loop, to which the loop gives no cause."""
    with (
        pytest.raises(ConnectionFailed, match="TLS"),
        RangeClient(served.node.bootstrap, retry_timeout_ms=3_000) as reader,
    ):
        reader.topic_names()
    options = AdminOptions(default_api_timeout_ms=1000)
    with (
        pytest.raises(ConnectionFailed, match="TLS"),
        sync.Admin(served.node.bootstrap, **options) as admin,
    ):
        admin.topics.all()


def test_certificates_are_replaced_under_load_without_an_error(served):
    """A client that connects anew all the time gets old or new certificates, never none."""
    errors = []
    serials = set()
    context = ssl.create_default_context(cafile=str(served.files.authority))
    host, port = served.tls.split(":")
    producer = Producer({**librdkafka(served, own=False), "error_cb": errors.append})
    stop = threading.Event()

    def load():
        number = 0
        while not stop.is_set():
            producer.produce("load", b"x", callback=lambda e, _m: e and errors.append(e))
            producer.poll(0.001)
            number += 1

    thread = threading.Thread(target=load)
    thread.start()
    try:
        while len(serials) < 3:
            with _connected(context, host, int(port)) as end:
                serial = end.getpeercert()["serialNumber"]
            if serial not in serials:
                serials.add(serial)
                make_development_files(served.files.folder, [], "alice", NOW)
    finally:
        stop.set()
        thread.join()
    assert producer.flush(120) == 0
    assert errors == []


def _connected(context, host, port):
    return context.wrap_socket(socket.create_connection((host, port)), server_hostname=host)


def test_no_key_is_in_the_log(served):
    """Neither text of the PEM files, nor their passwords."""
    log = (served.node.folder / "ottla.log").read_text()
    assert "serves on port" in log
    assert PASSWORD not in log
    for path in (served.files.server, served.files.client, served.files.authority_key):
        for line in path.read_text().splitlines():
            assert line.startswith("-----") or line not in log
