"""Spark's own Kafka connector (clients 3.9): a batch read and a batch write, unmodified."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from rig.issuer import Issuer
from rig.jars import SPARK_CONNECTOR
from rig.java import NoJava, java_home
from rig.secured import ALLOWED_URLS, BEARER, SCRAM, Secured, secured

CERTIFICATE = "mTLS"
MakeTopic = Callable[..., str]
pyspark_sql = pytest.importorskip(
    "pyspark.sql", reason="PySpark is an extra: pip install -e .[lake]"
)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """One session for the module: starting it costs seconds."""
    try:
        home = str(java_home())
    except NoJava as reason:
        pytest.skip(str(reason))
    if not SPARK_CONNECTOR.ready():
        pytest.skip(f"the connector's jars are not in {SPARK_CONNECTOR.folder}: run `make rig`")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", home)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        jars = ",".join(str(jar) for jar in sorted(SPARK_CONNECTOR.folder.glob("*.jar")))
        session = (
            pyspark_sql.SparkSession.builder.master("local[2]")
            .config("spark.jars", jars)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def fill(bootstrap: str, topic: str, partitions: int, each: int) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": "zstd", "log_level": 0}
    )
    for index in range(each):
        for partition in range(partitions):
            producer.produce(
                topic,
                key=f"k{index}".encode(),
                value=f"{partition}:{index}".encode(),
                partition=partition,
                headers=[("h", b"1")],
                timestamp=1_700_000_000_000 + index,
            )
    assert producer.flush(120) == 0


def reader(spark: Any, bootstrap: str, topic: str) -> Any:
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
    )


def test_batch_read_gets_every_record_of_every_partition(
    spark: Any, bootstrap: str, make_topic: MakeTopic
) -> None:
    """Partition, offset, key, value, timestamp and headers arrive in Spark's columns."""
    topic = make_topic(partitions=2)
    fill(bootstrap, topic, 2, 1000)

    rows = reader(spark, bootstrap, topic).load().orderBy("partition", "offset").collect()

    assert [(r.partition, r.offset) for r in rows] == [(p, i) for p in (0, 1) for i in range(1000)]
    assert bytes(rows[1005].value) == b"1:5"
    assert bytes(rows[1005].key) == b"k5"
    assert rows[1005].headers[0].key == "h"
    assert rows[1005].timestamp.timestamp() == 1_700_000_000.005


def test_batch_read_between_offsets_and_from_a_time(
    spark: Any, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(bootstrap, topic, 1, 100)

    between = (
        reader(spark, bootstrap, topic)
        .option("startingOffsets", f'{{"{topic}":{{"0":10}}}}')
        .option("endingOffsets", f'{{"{topic}":{{"0":25}}}}')
        .load()
        .count()
    )
    since = (
        reader(spark, bootstrap, topic)
        .option("startingOffsetsByTimestamp", f'{{"{topic}":{{"0":1700000000090}}}}')
        .load()
        .count()
    )

    assert (between, since) == (15, 10)


def test_batch_write_produces_records_that_are_read_again(
    spark: Any, bootstrap: str, make_topic: MakeTopic
) -> None:
    """The connector's sink, an idempotent Java producer, is acknowledged."""
    topic = make_topic(partitions=2)

    numbers = spark.range(500).selectExpr(
        "CAST(id AS STRING) AS key", "CONCAT('v', CAST(id AS STRING)) AS value"
    )
    numbers.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option(
        "topic", topic
    ).save()
    rows = reader(spark, bootstrap, topic).load().select("value").collect()

    assert sorted(bytes(r.value) for r in rows) == sorted(f"v{i}".encode() for i in range(500))


@pytest.fixture(scope="module")
def guarded() -> Iterator[Secured]:
    """Users log in by SCRAM and by tokens, and carol has a certificate."""
    issuer = Issuer()
    with secured({"ann": "the-secret-of-ann", "ben": "the-secret-of-ben"}, issuer=issuer) as broker:
        yield broker


@pytest.mark.parametrize(
    ("way", "user"), [(SCRAM, "ann"), (BEARER, "ben"), (CERTIFICATE, "CN=carol")]
)
def test_connector_reads_and_writes_what_acls_allow(
    spark: Any, guarded: Secured, tmp_path: Path, way: str, user: str
) -> None:
    """Batch and stream over TLS; without READ or WRITE the error says that it is authorization."""
    source, sink = f"source-{way}", f"sink-{way}"
    for name in (source, sink):
        guarded.create_topic(name)
    fill(guarded.node.bootstrap, source, 1, 100)
    assert guarded.issuer is not None
    spark.sparkContext._jvm.java.lang.System.setProperty(ALLOWED_URLS, guarded.issuer.token_url)
    settings = guarded.certificate_settings()
    if way != CERTIFICATE:
        settings = guarded.settings(user, way)
    options = {f"kafka.{name}": value for name, value in settings.items()}
    options["kafka.bootstrap.servers"] = guarded.mutual if way == CERTIFICATE else guarded.sasl

    def read(reader: Any) -> Any:
        frames = reader.format("kafka").options(**options, subscribe=source)
        frames = frames.options(**{"startingOffsets": "earliest", "fetchOffset.numRetries": "1"})
        return frames.load().select("key", "value")

    def written(writer: Any) -> Any:
        return writer.format("kafka").options(**options, topic=sink)

    # The connector's administrator client reports no names of topics.
    with pytest.raises(Exception, match=r"TopicAuthorizationException: Topic authorization failed"):
        read(spark.read).count()
    guarded.allow(user, "read", f"topic:{source}")
    assert read(spark.read).count() == 100
    with pytest.raises(Exception, match=rf"TopicAuthorizationException: .*\[{sink}\]"):
        written(read(spark.read).write).save()
    guarded.allow(user, "write", f"topic:{sink}")
    written(read(spark.read).write).save()
    for more in (100, 1):
        # The second query goes on from the checkpoint of the first.
        stream = written(read(spark.readStream).writeStream)
        stream = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        stream.start().awaitTermination()
        fill(guarded.node.bootstrap, source, 1, more)
    rows = reader(spark, guarded.node.bootstrap, sink).load().count()
    assert rows == 300
