"""Forty schema changes: after each, every reader finds every row, and verify proves the table."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rig.nodes import Node

from tests.lake.schema_year import BY_FORMAT, STEPS, Year, by_duckdb, plain

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
