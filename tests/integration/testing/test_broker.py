"""The in-process broker serves real clients, leaves nothing behind, and touches nothing global."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaProducer

import ottla.testing
from ottla.base.errors import OttlaError


def produce(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(count):
        producer.produce(topic, b"v%d" % number)
    assert producer.flush(120) == 0


def consume(bootstrap: str, topic: str, count: int, group: str = "g") -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes | None] = []
    deadline = time.monotonic() + 120
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


def test_fixture_is_a_broker(ottla: "ottla.testing.Broker") -> None:
    """The pytest plugin gives each test a broker of its own."""
    ottla.create_topic("t", partitions=2)
    produce(ottla.bootstrap, "t", 10)

    assert len(consume(ottla.bootstrap, "t", 10)) == 10


def test_two_brokers_side_by_side_share_nothing() -> None:
    with ottla.testing.Broker() as one, ottla.testing.Broker() as other:
        assert one.port != other.port
        produce(one.bootstrap, "t", 3)
        other.create_topic("u")
        produce(other.bootstrap, "u", 5)
        assert len(consume(one.bootstrap, "t", 3)) == 3
        assert len(consume(other.bootstrap, "u", 5)) == 5


def test_folder_of_the_users_keeps_the_data(tmp_path: Path) -> None:
    """A later broker in the same folder finds records and committed offsets again."""
    with ottla.testing.Broker(storage=tmp_path) as broker:
        produce(broker.bootstrap, "t", 4)
        assert len(consume(broker.bootstrap, "t", 4)) == 4
    with ottla.testing.Broker(storage=tmp_path) as broker:
        produce(broker.bootstrap, "t", 2)
        assert consume(broker.bootstrap, "t", 2) == [b"v0", b"v1"]


def test_temporary_folder_goes_with_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ottla.testing.Broker(storage="temporary") as broker:
        produce(broker.bootstrap, "t", 1)
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def children() -> set[str]:
    """The processes that any thread of this one has started and that still run."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # A thread that has just ended.
            found.update((task / "children").read_text().split())
    return found


def test_nothing_global_is_touched() -> None:
    """No signal handler, no loop policy, no thread that stays, no child process."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    policy = asyncio.get_event_loop_policy()
    before = children()
    with ottla.testing.Broker() as broker:
        produce(broker.bootstrap, "t", 1)
        assert children() == before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert asyncio.get_event_loop_policy() is policy
    assert not [t for t in threading.enumerate() if t.name.startswith("ottla") and t.is_alive()]


def test_settings_are_kafkas() -> None:
    with ottla.testing.Broker(settings={"num.partitions": "3"}) as broker:
        produce(broker.bootstrap, "t", 1)
        metadata = Producer({"bootstrap.servers": broker.bootstrap}).list_topics("t", 60)
        assert len(metadata.topics["t"].partitions) == 3


def test_wrong_setting_is_told_and_nothing_stays() -> None:
    with pytest.raises(OttlaError, match=r"num\.partitions"):
        ottla.testing.Broker(settings={"num.partition": "3"}).start()


def test_stopped_broker_says_how_to_use_it() -> None:
    with pytest.raises(OttlaError, match="with ottla"):
        _ = ottla.testing.Broker().bootstrap


def test_having_ottla_installed_costs_other_test_runs_nothing() -> None:
    """pytest loads the plugin in every project; it imports neither broker nor event loops."""
    code = (
        "import sys, ottla.testing.plugin;"
        "assert not [m for m in sys.modules if m.startswith(('ottla.broker', 'uvloop'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_broker_of_tests_needs_no_client() -> None:
    """A client would take a fifth of a second more to import."""
    code = (
        "import sys, ottla.testing.broker;"
        "assert not [m for m in sys.modules if m.startswith('ottla.client')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_secure_broker_serves_those_who_log_in(
    ottla_secure_broker: "ottla.testing.Broker",
) -> None:
    """Over TLS, as an administrator; in the words of each client library, without a file."""
    broker = ottla_secure_broker
    settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    producer = Producer({**settings, **broker.login.for_librdkafka()})
    producer.produce("t", b"x")
    assert producer.flush(120) == 0
    python = KafkaProducer(bootstrap_servers=broker.bootstrap, **broker.login.for_kafka_python())
    assert python.send("t", b"y").get(120).offset == 1
    python.close()
    wrong = {**broker.login.for_librdkafka(), "sasl.password": "x"}
    for refused in ({}, wrong):
        with pytest.raises(KafkaException):
            Producer({**settings, **refused}).list_topics(timeout=3)


def test_a_secure_broker_in_a_folder_has_a_new_login_each_time(tmp_path: Path) -> None:
    """The former one is refused; records are found again."""
    logins = []
    for number in (1, 2):
        with ottla.testing.Broker(storage=tmp_path, secure=True) as broker:
            settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
            logins.append(broker.login)
            producer = Producer({**settings, **broker.login.for_librdkafka()})
            producer.produce("t", b"x")
            assert producer.flush(120) == 0
            assert producer.list_topics(timeout=60).topics.keys() == {"t"}, number
    assert logins[0].password != logins[1].password
    assert logins[0].password not in repr(logins)


def test_an_open_broker_has_no_login_and_says_how_to_get_one() -> None:
    with ottla.testing.Broker() as broker, pytest.raises(OttlaError, match="secure=True"):
        _ = broker.login
    with pytest.raises(OttlaError, match="contradicts --secure"):
        ottla.testing.Broker(secure=True, settings={"super.users": "User:x"}).start()
