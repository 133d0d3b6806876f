"""Forty schema changes: after each, every reader finds every row, and verify proves the table."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import Decode, Format, run_here
from ottla.lake.model.decode_spec import columns
from ottla.lake.tables.formats import Format as TableFormat
from tests.system.lake.schema_year import BY_FORMAT, STEPS, Year, by_duckdb, plain

MakeTopic = Callable[..., str]


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_a_year_of_schema_changes_is_read_after_each_of_them(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: str
) -> None:
    """By the format's own reader, and by DuckDB from the files that count (P14)."""
    year = Year(node, make_topic(node, partitions=1), tmp_path / "orders")
    read = BY_FORMAT.get(kind, by_duckdb)
    for number, step in enumerate(STEPS, 1):
        year.take(step, format=kind)
        assert plain(read(year.target), year.names) == year.rows, step.what
        if number % 8 == 0:
            assert plain(by_duckdb(year.target), year.names) == year.rows, step.what
            assert year.problems() == [], step.what
    ottla.lake.compact(str(year.target), master="here")
    assert len(ottla.lake.files(str(year.target))) == 1
    assert plain(by_duckdb(year.target), year.names) == year.rows
    # pyiceberg 0.12 reads null lists and maps of such a file as empty ones.
    found = plain(read(year.target), year.names)
    assert without_empty(found) == without_empty(year.rows)
    assert year.problems() == []


def without_empty(value: Any) -> Any:
    """The value without fields, at any depth, whose lists and maps have nothing."""
    if isinstance(value, dict):
        return {name: without_empty(each) for name, each in value.items() if each not in ([], {})}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


def test_spark_reads_a_table_of_parquet_files_with_narrower_and_wider_columns(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By the table's types, whichever file it opens first; before a compaction and after it."""
    year = Year(node, make_topic(node, partitions=1), tmp_path / "orders")
    for step in STEPS[:14]:
        year.take(step)
    table = ottla.lake.table(str(year.target))
    assert plain(table.to_spark(spark).toArrow(), year.names) == year.rows
    assert plain(table.to_arrow(), year.names) == year.rows
    ottla.lake.compact(str(year.target), master="here")
    files = ottla.lake.files(str(year.target))
    assert plain(spark.read.parquet(*files).toArrow(), year.names) == year.rows


@pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
def test_changelog_follows_fields_that_come_and_types_that_widen(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: TableFormat
) -> None:
    """Also in buckets that a run does not touch; the values of a history in Delta keep theirs."""
    topic, target = make_topic(node, partitions=1), tmp_path / "orders"
    keep = partial(
        ottla.lake.changelog,
        topic,
        bootstrap=node.bootstrap,
        runner=run_here,
        buckets=4,
        format=kind,
    )
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    wanted: dict[int, Any] = {}
    declared = (
        {"id": "int32", "o": "struct<a: int32>"},
        {"id": "int64", "o": "struct<a: int64, b: string>"},
    )
    for turn, types in enumerate(declared):
        for number in (*range(0, 12, 6 * turn + 1), 0):
            wanted[number] = {"id": number + turn * 2**40, "o": {"a": number + turn * 2**40}}
            if turn:
                wanted[number]["o"]["b"] = "new"
            producer.produce(topic, json.dumps(wanted[number]), b"k%d" % number)
        assert producer.flush(120) == 0
        decode = Decode(value=Format("json", columns(types)))
        keep(str(target), decode=decode)
        if kind == "delta" and turn:
            with pytest.raises(OttlaError, match="values of a history that have ended"):
                keep(str(tmp_path / "history"), kind="history", decode=decode)
        else:
            keep(str(tmp_path / "history"), kind="history", decode=decode)
        found = BY_FORMAT.get(kind, by_duckdb)(target)
        rows = sorted(plain(found, ["id", "o"]), key=repr)
        assert rows == sorted(wanted.values(), key=repr)
        assert ottla.lake.verify(str(target), bootstrap=node.bootstrap).problems == []
