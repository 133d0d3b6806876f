"""Topics and tables in a notebook: the same rows in every form."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import run_here

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


@pytest.fixture
def topic(either: Node, make_topic: MakeTopic, produce: Produce) -> str:
    name = make_topic(either, partitions=2)
    produce(either, name, 0, 400)
    return name


def test_a_topic_in_every_form(either: Node, topic: str) -> None:
    """With the columns of the data source."""
    rows = ottla.lake.topic(topic, bootstrap=either.bootstrap)
    table = rows.to_arrow()
    assert table.schema == rows.schema
    assert sorted(table["value"].to_pylist()) == sorted(b"v%d" % n for n in range(400))
    assert rows.to_pandas()["offset"].sum() == pc.sum(table["offset"]).as_py()
    assert rows.to_polars().shape == (400, 8)


def test_boundaries_columns_and_limit(either: Node, topic: str) -> None:
    """What is not wanted is not read."""
    part = ottla.lake.topic(
        topic, bootstrap=either.bootstrap, start="0:3,1:-1", end="0:10", columns=["offset"]
    )
    assert part.to_arrow().to_pydict() == {"offset": list(range(3, 10))}
    few = ottla.lake.topic(topic, bootstrap=either.bootstrap, limit=7)
    assert [few.to_arrow().num_rows, few.to_polars().height] == [7, 7]
    assert sum(batch.num_rows for batch in few.batches()) == 7
    none = ottla.lake.topic(topic, bootstrap=either.bootstrap, limit=0, columns=["key"])
    assert none.to_arrow() == pa.table({"key": pa.array([], pa.binary())})


def test_wrong_words_are_refused_at_once() -> None:
    with pytest.raises(OttlaError, match="no column"):
        ottla.lake.topic("flights", columns=["nothing"])


def test_a_table_has_the_rows_of_its_topic(either: Node, topic: str, tmp_path: Path) -> None:
    """Of the files that count, whatever else lies there."""
    ottla.lake.load(topic, str(tmp_path), bootstrap=either.bootstrap, runner=run_here)
    table = ottla.lake.table(str(tmp_path)).to_arrow()
    rows = ottla.lake.topic(topic, bootstrap=either.bootstrap).to_arrow()
    names = {"timestampType": "timestamp_type"}
    renamed = rows.rename_columns([names.get(name, name) for name in rows.column_names])
    assert table.equals(renamed.select(table.column_names))
    assert ottla.lake.table(str(tmp_path), columns=["value"], limit=5).to_pandas().shape == (5, 1)
    with pytest.raises(OttlaError, match="has no column nothing"):
        ottla.lake.table(str(tmp_path), columns=["nothing"])
