"""Loads and reads by Spark Connect: the session is a client, and there are no RDDs."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig.nodes import Node

import ottla.lake
from tests.system.lake.spark_daemon import free_port, started

Produce = Callable[..., None]
MakeTopic = Callable[..., str]

SECRET = 'x required username="ann" password="hunter2 is \\\\ a \\" secret";'
READ = """
import sys
import ottla.lake
from ottla.lake.job.session import SparkSettings, session
spark = session(SparkSettings(sys.argv[1]))
topic = ottla.lake.topic(sys.argv[2], bootstrap=sys.argv[3], columns=["partition", "value"])
frame = topic.to_spark(spark)
print(type(spark).__module__, frame.count(), frame.where("partition = 1").count())
# What it logs in by: it is for the server's event log. Without security.protocol it is refused.
options = {"kafka.sasl.jaas.config": sys.argv[5], "kafka.ssl.keystore.key": sys.argv[5]}
reader = spark.read.format("ottla").option("subscribe", sys.argv[2])
reader = reader.option("kafka.bootstrap.servers", sys.argv[3])
try:
    reader.options(**options).load().count()
except Exception as error:
    assert "has no effect with security.protocol=PLAINTEXT" in str(error)
    assert "hunter2" not in str(error)
else:
    raise AssertionError("settings of a login had no effect, and no error said so")
print(ottla.lake.table(sys.argv[4]).to_spark(spark).count())
"""


@pytest.fixture
def remote(spark: Any, tmp_path: Path) -> Iterator[str]:
    """The URL of a Connect server on this machine."""
    del spark  # Only for its JAVA_HOME.
    if importlib.util.find_spec("grpc_status") is None:
        pytest.skip("Spark Connect needs grpcio-status")
    port = free_port()
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    words = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", "--class", server]
    words += [
        "--conf",
        f"spark.connect.grpc.binding.port={port}",
        "--conf",
        "spark.ui.enabled=false",
    ]
    (tmp_path / "events").mkdir()
    for setting in (
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir={(tmp_path / 'events').as_uri()}",
        "spark.eventLog.compress=false",
        "spark.driver.host=127.0.0.1",
    ):
        words += ["--conf", setting]
    words.append("spark-internal")
    with started(tmp_path, "connect", words, port, PYSPARK_PYTHON=sys.executable):
        yield f"sc://127.0.0.1:{port}"


def test_connect_loads_and_reads(
    node: Node, remote: str, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """`run`, `load`, `follow` and `verify`, the data source, and the table, by one server."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 300)
    path, target = tmp_path / "pipeline.toml", str(tmp_path / "table")
    path.write_text(
        f'[source]\ntopic = "{topic}"\nbootstrap = "{node.bootstrap}"\n'
        f'[target]\ntable = "{target}"\n[spark]\nmaster = "{remote}"\n'
    )
    command = [sys.executable, "-m", "ottla.cli", "lake"]
    done = subprocess.run([*command, "run", str(path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "300 rows in 2 files" in done.stdout
    assert "100% · 300 of 300 offsets" in done.stderr

    words = [sys.executable, "-c", READ, remote, topic, node.bootstrap, target, SECRET]
    read = subprocess.run(words, check=False, capture_output=True, text=True, env=dict(os.environ))
    assert read.returncode == 0, read.stderr[:3000]
    kind, count, of_one, in_table = read.stdout.split()
    assert kind == "pyspark.sql.connect.session"
    assert (count, in_table) == ("300", "300")
    events = "".join(one.read_text() for one in (tmp_path / "events").rglob("events_*"))
    assert "data_source" in events
    assert "hunter2" not in events
    assert 0 < int(of_one) < 300

    produce(node, topic, 300, 340)
    there = ["--bootstrap", node.bootstrap, "--master", remote]
    for words in (
        ["load", topic, "--to", target],
        ["follow", topic, "--to", str(tmp_path / "followed"), "--once"],
        ["verify", target, "--spark", "-o", "json"],
    ):
        done = subprocess.run(
            [*command, *words, *there], check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
    followed = ottla.lake.verify(str(tmp_path / "followed"), bootstrap=node.bootstrap)
    assert (followed.problems, followed.rows) == ([], 340)
    report = json.loads(done.stdout)
    assert (report["proven"], report["rows"], report["compared"]) == (True, 340, 340)
