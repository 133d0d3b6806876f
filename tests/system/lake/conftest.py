"""A broker, a real Kafka, and one Spark session for all tests of the lake."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.jars import SPARK_CONNECTOR
from rig.java import NoJava, java_home
from rig.kafka import available, kafka
from rig.nodes import Node

_numbers = itertools.count(1)

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    with ottla() as running:
        yield running


@pytest.fixture(scope="session")
def kafka_node() -> Iterator[Node]:
    """Apache Kafka, with a cleaner that does not wait."""
    reason = available()
    if reason is not None:
        pytest.skip(reason)
    settings = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}
    with kafka(quick=True, settings=settings) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local session; starting it costs seconds."""
    try:
        os.environ["JAVA_HOME"] = str(java_home())
    except NoJava as reason:
        pytest.skip(str(reason))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2,4]")
        .appName("ottla tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.authenticate.socketTimeout", "5m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, SPARK_CONNECTOR.folder.glob("*.jar"))))
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def make_topic() -> MakeTopic:
    """`make_topic(node, partitions=2, cleanup_policy="compact")`: a topic of its own."""

    def make(node: Node, partitions: int = 2, **settings: str) -> str:
        name = f"lake-{next(_numbers)}"
        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        created = admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        created[name].result(90)
        return name

    return make


@pytest.fixture
def produce() -> Callable[..., None]:
    """`produce(node, topic, first, last)`: records k<n> → v<n> spread over the partitions."""

    def send(node: Node, topic: str, first: int, last: int, **settings: Any) -> None:
        producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0, **settings})
        for number in range(first, last):
            producer.produce(topic, b"v%d" % number, b"k%d" % number, headers=[("n", b"1")])
        assert producer.flush(120) == 0

    return send


@pytest.fixture(params=["ottla", "kafka"])
def either(request: pytest.FixtureRequest) -> Node:
    """Ottla, then Apache Kafka: what a test asks of it holds for both."""
    running: Node = request.getfixturevalue("node" if request.param == "ottla" else "kafka_node")
    return running
