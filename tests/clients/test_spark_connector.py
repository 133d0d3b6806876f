"""Spark's own Kafka connector (clients 3.9): a batch read and a batch write, unmodified."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from rig.jars import SPARK_CONNECTOR
from rig.java import NoJava, java_home
from rig.secured import secured

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


def test_connector_reads_and_writes_over_tls_and_scram(spark: Any, tmp_path: Path) -> None:
    """Batch and stream, with READ on the one topic and WRITE on the other."""
    with secured({"ann": "the-secret-of-ann"}) as broker:
        for name in ("source", "sink"):
            broker.create_topic(name)
        fill(broker.node.bootstrap, "source", 1, 100)
        broker.allow("ann", "read", "topic:source")
        broker.allow("ann", "write", "topic:sink")
        options = {f"kafka.{name}": value for name, value in broker.settings("ann").items()}

        def read(reader: Any) -> Any:
            source = reader.format("kafka").options(**options, subscribe="source")
            source = source.option("kafka.bootstrap.servers", broker.sasl)
            return source.option("startingOffsets", "earliest").load().select("key", "value")

        def written(writer: Any) -> Any:
            into = writer.format("kafka").options(**options, topic="sink")
            return into.option("kafka.bootstrap.servers", broker.sasl)

        assert read(spark.read).count() == 100
        written(read(spark.read).write).save()
        stream = written(read(spark.readStream).writeStream)
        stream = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        stream.start().awaitTermination()
        rows = reader(spark, broker.node.bootstrap, "sink").load().count()
    assert rows == 200
