"""What tampering with a changelog table looks like to `verify`: found, and named by offset.

Each change is found by the file's digest; the replay of the topic says what it means. The report
is the same where jobs check the buckets.
"""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.lake import run_here
from ottla.lake.tables.opening import existing_table
from tests.system.lake.runners import after

MakeTopic = Callable[..., str]
Edit = Callable[[pa.Table], pa.Table]

# Offsets 0 to 5, with the keys a, b, c, d (deleted), a, c; then in a second commit b at 6.
RECORDS = [(b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"d", None), (b"a", b"2"), (b"c", b"2")]
LATER = [(b"b", b"2")]


def write(
    node: Node, topic: str, records: Sequence[tuple[bytes, bytes | None]], now_ms: int
) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for number, (key, value) in enumerate(records):
        producer.produce(topic, value, key, partition=0, timestamp=now_ms + number)
    assert producer.flush(120) == 0


def keep(node: Node, topic: str, target: Path, **options: Any) -> ottla.lake.LoadResult:
    given = {"runner": run_here, "buckets": 1, **options}
    return ottla.lake.changelog(topic, str(target), bootstrap=node.bootstrap, **given)


def tables(node: Node, topic: str, folder: Path, kind: str) -> Path:
    """A table of two commits."""
    write(node, topic, RECORDS, 1_700_000_000_000)
    keep(node, topic, folder, kind=kind)
    write(node, topic, LATER, 1_700_000_001_000)
    keep(node, topic, folder, kind=kind)
    return folder


def said(target: Path, node: Node, runner: Any = None) -> str:
    found = ottla.lake.verify(str(target), bootstrap=node.bootstrap, runner=runner)
    return "\n".join(found.problems)


def where(rows: pa.Table, offset: int, column: str, value: Any) -> pa.Table:
    """The rows with another value in one of them."""
    at = rows.schema.get_field_index(column)
    field = rows.schema.field(at)
    is_it = pc.equal(rows.column("offset"), offset)
    other = pa.scalar(value, field.type)
    return rows.set_column(at, field, pc.if_else(is_it, other, rows.column(column)))


def without(rows: pa.Table, offset: int) -> pa.Table:
    return rows.filter(pc.not_equal(rows.column("offset"), offset))


def resurrected(rows: pa.Table) -> pa.Table:
    """The key d, with the offset of its deletion and a value."""
    row = where(
        where(rows.slice(0, 1), rows.column("offset")[0].as_py(), "key", b"d"), 0, "key", b"d"
    )
    row = where(row, row.column("offset")[0].as_py(), "offset", 3)
    return pa.concat_tables([rows, row])


EDITS: dict[str, tuple[str, Edit, str]] = {
    "an altered value": (
        "latest",
        lambda rows: where(rows, 4, "value", b"9"),
        "rows that differ from the topic's records: 4",
    ),
    "an altered time": (
        "latest",
        lambda rows: where(rows, 4, "timestamp", 0),
        "rows that differ from the topic's records: 4",
    ),
    "a removed key": (
        "latest",
        lambda rows: without(rows, 5),
        "changes of keys that the table does not have: 5",
    ),
    "a resurrected key": (
        "latest",
        resurrected,
        "bucket 0 holds a key of a partition twice (PARTITION:OFFSET): 0:3",
    ),
    "a key twice": (
        "latest",
        lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
        "bucket 0 holds a key of a partition twice",
    ),
    "an earlier record of a key": (
        "latest",
        lambda rows: where(where(rows, 6, "value", b"1"), 6, "offset", 1),
        "rows that a later change outdates: 1",
    ),
    "an altered valid_from": (
        "history",
        lambda rows: where(rows, 4, "valid_from", 0),
        "values that hold from or to other times than the topic says (PARTITION:OFFSET): 0:4",
    ),
    "an altered valid_to": (
        "history",
        lambda rows: where(rows, 6, "valid_to", 1_800_000_000_000_000),
        "values that hold from or to other times than the topic says (PARTITION:OFFSET): 0:6",
    ),
    "a removed value": (
        "history",
        lambda rows: without(rows, 4),
        "changes of keys that the table does not have: 4",
    ),
}


@pytest.mark.parametrize(("kind", "edit", "wanted"), EDITS.values(), ids=EDITS.keys())
def test_what_was_changed_is_named(
    node: Node, make_topic: MakeTopic, tmp_path: Path, kind: str, edit: Edit, wanted: str
) -> None:
    target = tables(node, make_topic(node, partitions=1), tmp_path, kind)
    (file,) = [one for one in existing_table(str(target)).live_files() if not one.closed]
    path = target / file.path
    pq.write_table(edit(pq.ParquetFile(path).read()), path, store_schema=False)
    found = said(target, node)
    assert f"{file.path} is not as it was written" in found
    assert wanted in found
    assert said(target, node, after(lambda: None)) == found
    assert list((target / "_ottla/work").iterdir()) == []


@pytest.mark.parametrize("part", ["files", "hidden"])
def test_a_stale_file_of_an_earlier_commit_is_named(
    node: Node, make_topic: MakeTopic, tmp_path: Path, part: str
) -> None:
    target = tables(node, make_topic(node, partitions=1), tmp_path, "latest")
    first, second = list(existing_table(str(target)).history())
    (old,), (new,) = getattr(first, part)[:1], getattr(second, part)[:1]
    before = (target / old.path).read_bytes()
    if before == (target / new.path).read_bytes():
        return  # The deletion of d is the same in both: nothing is stale.
    shutil.copy(target / old.path, target / new.path)
    found = said(target, node)
    assert f"{new.path} is not as it was written" in found
    assert "rows that a later change outdates: 1" in found


def test_jobs_of_spark_find_the_same(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Topic and buckets are read by tasks; their files of work are gone afterwards."""
    target = tables(node, make_topic(node, partitions=1), tmp_path, "latest")
    sound = ottla.lake.verify(str(target), bootstrap=node.bootstrap, spark_session=spark)
    assert (sound.problems, sound.compared) == ([], 4)
    (file,) = existing_table(str(target)).live_files()
    path = target / file.path
    rows = where(pq.ParquetFile(path).read(), 5, "value", b"9")
    pq.write_table(rows, path, store_schema=False)
    found = ottla.lake.verify(str(target), bootstrap=node.bootstrap, spark_session=spark)
    assert "\n".join(found.problems) == said(target, node)
    assert list((target / "_ottla/work").iterdir()) == []
