"""Upkeep against a topic: the table's rows stay those of the topic, whatever is done to files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.client import sync
from ottla.lake import Decode, Format, run_here, run_jobs_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def loads(
    node: Node, produce: Produce, topic: str, target: Path, counts: list[int], **settings: Any
) -> None:
    """Loads of so many records each."""
    done = 0
    for count in counts:
        produce(node, topic, done, done + count)
        done += count
        ottla.lake.load(topic, str(target), bootstrap=node.bootstrap, runner=run_here, **settings)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_spark_compacts_and_verify_compares_with_the_topic(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path, kind: str
) -> None:
    topic = make_topic(node, partitions=3)
    loads(node, produce, topic, tmp_path, [200, 100, 50], format=kind)
    done = ottla.lake.compact(str(tmp_path), spark_session=spark)

    assert (done.removed, done.added, done.rows) == (9, 3, 350)
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 350, 350)
    assert spark.read.parquet(*ottla.lake.files(str(tmp_path))).count() == 350


@pytest.mark.parametrize("keep_raw", [True, False])
def test_typed_columns_are_compacted_with_their_rows(
    node: Node, make_topic: MakeTopic, tmp_path: Path, keep_raw: bool
) -> None:
    """Verify decodes again and compares; files of before a new column stay as they are."""
    topic = make_topic(node, partitions=1)
    decode = Decode(value=Format("json"), keep_raw=keep_raw)
    for number in range(6):
        more = {"later": number} if number >= 3 else {}
        with sync.Producer(node.bootstrap) as producer:
            for at in range(5):
                producer.send(topic, json.dumps({"id": 5 * number + at, **more}).encode())
        ottla.lake.load(
            topic, str(tmp_path), bootstrap=node.bootstrap, decode=decode, runner=run_here
        )
    done = ottla.lake.compact(str(tmp_path), master="here")

    assert (done.removed, done.added, done.rows) == (3, 1, 15)
    paths = ottla.lake.files(str(tmp_path))
    assert len(paths) == 4
    tables = [pq.read_table(path) for path in paths]
    assert sorted(one for table in tables for one in table["id"].to_pylist()) == list(range(30))
    assert tables[-1]["later"].to_pylist() == [3] * 5 + [4] * 5 + [5] * 5
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 30, 30)


def test_a_changelog_table_is_not_compacted(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    ottla.lake.changelog(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_jobs_here)
    with pytest.raises(OttlaError, match="is a changelog table"):
        ottla.lake.compact(str(tmp_path), master="here")
