"""Upkeep against a topic: the table's rows stay those of the topic, whatever is done to files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.cli.lake.state import files
from ottla.client import sync
from ottla.lake import Decode, Format, run_here
from ottla.lake.tables.formats import Format as TableFormat

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
    """Verify decodes again and compares; files of before a new column get it."""
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

    assert (done.removed, done.added, done.rows) == (6, 1, 30)
    (path,) = ottla.lake.files(str(tmp_path))
    rows = pq.read_table(path)
    assert rows["id"].to_pylist() == list(range(30))
    assert rows["later"].to_pylist() == [None] * 15 + [3] * 5 + [4] * 5 + [5] * 5
    found = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 30, 30)


def test_a_changelog_table_is_not_compacted(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    ottla.lake.changelog(topic, str(tmp_path), bootstrap=node.bootstrap, runner=run_here)
    with pytest.raises(OttlaError, match="is a changelog table"):
        ottla.lake.compact(str(tmp_path), master="here")


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_the_view_of_the_files_that_count_has_each_row_once(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path, kind: TableFormat
) -> None:
    """While a load runs, and beside the files that a compaction has replaced."""
    topic, target = make_topic(node, partitions=1), tmp_path / "it's mine"

    def counted() -> int:
        with duckdb.connect() as engine:
            said = CliRunner().invoke(files, [str(target), "--sql", "duckdb"])
            assert said.exit_code == 0, said.output
            engine.execute(said.output)
            ((count,),) = engine.sql('select count(*) from "it\'s mine"').fetchall()
            return int(count)

    seen = []

    def look(step: str) -> None:
        if step == "files written" and ottla.lake.files(str(target)):
            seen.append(counted())

    for turn in range(2):
        produce(node, topic, turn * 100, turn * 100 + 100)
        ottla.lake.load(
            topic,
            str(target),
            bootstrap=node.bootstrap,
            runner=run_here,
            format=kind,
            watch=ottla.lake.Observer(on_step=look),
        )
    ottla.lake.compact(str(target), master="here")
    assert seen == [100]
    assert counted() == 200
    assert sum(pq.read_metadata(path).num_rows for path in target.glob("data/*.parquet")) == 400
