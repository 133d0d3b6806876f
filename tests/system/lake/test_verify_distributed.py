"""A table verified by jobs, in this process or by Spark, has the report of one piece."""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.lake import Decode, Format, run_here
from ottla.lake.model.decode_spec import columns

MakeTopic = Callable[..., str]


def make(node: Node, topic: str, target: Path, **options: Any) -> None:
    """Two loads of JSON in two partitions, with a dead letter in each."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    decode = Decode(Format("json", columns({"n": "int64"})), on_bad_record="dead-letter", **options)
    for load in range(2):
        for number in range(50):
            producer.produce(topic, b'{"n": %d}' % number, partition=number % 2)
        producer.produce(topic, b"no JSON", partition=load)
        assert producer.flush(120) == 0
        ottla.lake.load(
            topic, str(target), bootstrap=node.bootstrap, runner=run_here, decode=decode
        )


def pickled(tasks: Sequence[Any]) -> list[Any]:
    """As on Spark: in any order, and task and result travel."""
    order = random.Random(5).sample(range(len(tasks)), len(tasks))
    found = {n: pickle.dumps(pickle.loads(pickle.dumps(tasks[n])).run()) for n in order}
    return [pickle.loads(found[n]) for n in range(len(tasks))]


def altered(path: str) -> None:
    rows = pq.read_table(path)
    at = rows.schema.get_field_index("timestamp_type")
    kinds = [1, *rows["timestamp_type"].to_pylist()[1:]]
    field = rows.schema.field("timestamp_type")
    pq.write_table(rows.set_column(at, field, pa.array(kinds, field.type)), path)


def column_altered(path: str) -> None:
    rows = pq.read_table(path)
    at = rows.schema.get_field_index("n")
    field = rows.schema.field("n")
    pq.write_table(rows.set_column(at, field, pa.array([7] * len(rows), field.type)), path)


def tamper(target: Path) -> None:
    """Remove a file, alter a row of another, a typed column, and a file of dead letters."""
    files = sorted(ottla.lake.files(str(target)))
    Path(files[0]).unlink()
    altered(files[1])
    column_altered(files[2])
    next((target / "_dead_letters").iterdir()).write_bytes(b"rubbish")


@pytest.mark.parametrize("keep_raw", [True, False])
def test_jobs_have_the_report_of_one_piece(
    either: Node, make_topic: MakeTopic, tmp_path: Path, keep_raw: bool
) -> None:
    """Proven or tampered with: each count, problem and word is the same, in the same order."""
    topic = make_topic(either, partitions=2)
    make(either, topic, tmp_path, keep_raw=keep_raw)
    for _ in range(2):
        here = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap)
        there = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap, runner=pickled)
        assert there == here
        if here.proven:
            assert (here.rows, here.dead_letters, here.compared) == (100, 2, 102)
            tamper(tmp_path)
    told = "\n".join(here.problems)
    for word in (
        "is missing",
        "missing from the lake: 0, 1",
        "altered in the lake: " if keep_raw else "its column timestamp_type is not what",
        "its column n",
    ):
        assert word in told


def test_spark_has_the_report_of_this_process(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=2)
    make(node, topic, tmp_path)
    for _ in range(2):
        here = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
        assert here == ottla.lake.verify(
            str(tmp_path), bootstrap=node.bootstrap, spark_session=spark
        )
        if here.proven:
            tamper(tmp_path)
    assert not here.proven


def test_the_command_verifies_on_spark(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """`--spark` with a master and settings; what it prints is what it prints without."""
    topic = make_topic(node, partitions=2)
    make(node, topic, tmp_path)
    command = [shutil.which("ottla", path=str(Path(sys.executable).parent)) or "ottla"]
    command += ["lake", "verify", str(tmp_path), "--bootstrap", node.bootstrap, "-o", "json"]
    on_spark = ["--spark", "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    answers = [
        json.loads(
            subprocess.run(
                [*command, *more], check=True, capture_output=True, env=dict(os.environ)
            ).stdout
        )
        for more in ([], on_spark)
    ]
    assert answers[0] == answers[1]
    assert answers[1]["proven"] is True
