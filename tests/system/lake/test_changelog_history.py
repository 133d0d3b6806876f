"""A history tells at any time what a reader of the topic would have had."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import run_here
from ottla.lake.job.merge_task import write_intervals
from ottla.lake.tables.opening import existing_table
from tests.system.lake.test_changelog import compact

MakeTopic = Callable[..., str]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Written:
    """A record that was written."""

    key: bytes
    value: bytes | None
    partition: int
    offset: int
    timestamp_ms: int


def write(node: Node, topic: str, count: int, chance: Random, written: list[Written]) -> None:
    """Changes of few keys in two partitions; the time goes back now and then."""
    now_ms = written[-1].timestamp_ms if written else START_MS

    def on_delivery(error: object, message: Any) -> None:
        assert error is None, error
        place = message.partition(), message.offset(), message.timestamp()[1]
        written.append(Written(message.key(), message.value(), *place))

    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for _ in range(count):
        now_ms += chance.randrange(-20, 40)
        value = None if chance.random() < 0.3 else b"%d" % chance.randrange(10**9)
        key = b"k%d" % chance.randrange(20)
        producer.produce(
            topic,
            value,
            key,
            partition=chance.randrange(2),
            timestamp=now_ms,
            on_delivery=on_delivery,
        )
    assert producer.flush(120) == 0


def replay(written: list[Written], moment_ms: int) -> list[tuple[bytes, bytes, int, int]]:
    """The last change of each key and partition at a time; earlier times count as those before."""
    now: dict[tuple[bytes, int], int] = {}
    found: dict[tuple[bytes, int], Written] = {}
    for one in sorted(written, key=lambda one: one.offset):
        place = one.key, one.partition
        now[place] = max(now.get(place, one.timestamp_ms), one.timestamp_ms)
        if now[place] <= moment_ms:
            found[place] = one
    return sorted(
        (one.key, one.value, one.partition, one.offset)
        for one in found.values()
        if one.value is not None
    )


def held(target: Path, moment_ms: int) -> list[tuple[bytes, bytes, int, int]]:
    rows = ottla.lake.changelog_as_of(str(target), EPOCH + timedelta(milliseconds=moment_ms))
    return sorted(
        (row["key"], row["value"], row["partition"], row["offset"]) for row in rows.to_pylist()
    )


def place(row: dict[str, Any]) -> tuple[bytes, bytes, int, int]:
    return bytes(row["key"]), bytes(row["value"]), row["partition"], row["offset"]


def keep(node: Node, topic: str, target: Path, **options: Any) -> ottla.lake.LoadResult:
    given = {"runner": run_here, "buckets": 3, "kind": "history", **options}
    return ottla.lake.changelog(topic, str(target), bootstrap=node.bootstrap, **given)


def problems(target: Path, node: Node | None) -> list[str]:
    bootstrap = node.bootstrap if node else None
    return ottla.lake.verify(str(target), bootstrap=bootstrap).problems


def test_at_any_time_it_holds_what_the_topic_held(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """After commits of any size, with late records, deletions, keys in two partitions (P14)."""
    topic = make_topic(either, partitions=2)
    chance, written = Random(3), list[Written]()
    for count in (150, 1, 30, 90):
        write(either, topic, count, chance, written)
        keep(either, topic, tmp_path)
        for _ in range(5):
            moment_ms = START_MS + chance.randrange(-10, 10 * len(written) + 50)
            assert held(tmp_path, moment_ms) == replay(written, moment_ms)
            moment = EPOCH + timedelta(milliseconds=moment_ms)
            read = ottla.lake.table(str(tmp_path), as_of=moment).to_arrow().to_pylist()
            assert sorted(map(place, read)) == replay(written, moment_ms)
        assert problems(tmp_path, either) == []
        assert problems(tmp_path, None) == []
    found = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap)
    assert found.compared == found.rows == sum(one.value is not None for one in written)


def test_sql_reads_it_as_of_a_time(
    node: Node, spark: Any, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The query that the page about the lake shows; built by tasks of Spark."""
    topic = make_topic(node, partitions=2)
    written: list[Written] = []
    write(node, topic, 120, Random(5), written)
    keep(node, topic, tmp_path, runner=None, spark_session=spark)
    moment_ms = START_MS + 600
    paths = ottla.lake.files(str(tmp_path))
    rows = duckdb.execute(
        'SELECT key, value, "partition", "offset" FROM read_parquet($files) '
        "WHERE valid_from <= $moment AND (valid_to > $moment OR valid_to IS NULL)",
        {"files": paths, "moment": EPOCH + timedelta(milliseconds=moment_ms)},
    ).fetchall()
    assert sorted(rows) == replay(written, moment_ms)
    moment = EPOCH + timedelta(milliseconds=moment_ms)
    frame = ottla.lake.table(str(tmp_path), as_of=moment).to_spark(spark)
    assert sorted(place(row.asDict()) for row in frame.collect()) == replay(written, moment_ms)
    assert "valid_from" in ottla.lake.table(str(tmp_path)).to_arrow().schema.names


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_in_a_table_of_another_format(
    node: Node, make_topic: MakeTopic, tmp_path: Path, table_format: str
) -> None:
    """Its log has the two columns of times, and each commit is one of its own."""
    topic = make_topic(node, partitions=2)
    chance, written = Random(8), list[Written]()
    moment_ms = START_MS + 500
    for count in (90, 20):
        write(node, topic, count, chance, written)
        keep(node, topic, tmp_path, format=table_format)
        assert held(tmp_path, moment_ms) == replay(written, moment_ms)
        assert problems(tmp_path, node) == []
    if table_format == "delta":
        from deltalake import DeltaTable

        seen = DeltaTable(str(tmp_path)).to_pyarrow_table(columns=["valid_from", "valid_to"])
        assert seen.num_rows == sum(one.value is not None for one in written)


def test_what_compaction_took_from_the_topic_stays_in_the_history(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(
        node, partitions=2, cleanup_policy="compact", min_cleanable_dirty_ratio="1",
        delete_retention_ms="0",
    )  # fmt: skip
    chance, written = Random(4), list[Written]()
    for _ in range(3):
        write(node, topic, 80, chance, written)
        keep(node, topic, tmp_path)
        compact(node, topic)
        assert problems(tmp_path, node) == []
    moment_ms = START_MS + 700
    assert held(tmp_path, moment_ms) == replay(written, moment_ms)
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).only_in_lake > 0


def test_a_time_that_was_changed_is_found(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By the file's digest, and, where that was forged as well, by the replay."""
    topic = make_topic(node, partitions=2)
    write(node, topic, 80, Random(6), [])
    keep(node, topic, tmp_path)
    table = existing_table(str(tmp_path))
    file = next(one for one in table.live_files() if one.closed)
    rows = pq.read_table(tmp_path / file.path)
    at = rows.schema.get_field_index("valid_from")
    earlier = pa.array([0] * rows.num_rows, pa.int64()).cast(rows.schema.field(at).type)
    changed = rows.set_column(at, rows.schema.field(at), earlier)
    pq.write_table(changed, tmp_path / file.path, store_schema=False)
    found = "\n".join(problems(tmp_path, node))
    assert "is not as it was written" in found
    assert "values that hold from or to other times than the topic says" in found
    forged = write_intervals(table.store, "data/x", file.partition, changed, closed=True)
    assert forged is not None
    assert forged.hash != file.hash


def test_what_a_history_cannot_be_is_refused(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(node, partitions=1)
    with pytest.raises(OttlaError, match="a history needs the time of each record"):
        keep(node, topic, tmp_path / "null", on_bad_timestamp="null")
    keep(node, topic, tmp_path / "latest", kind="latest")
    with pytest.raises(OttlaError, match="this table keeps the latest of each key"):
        keep(node, topic, tmp_path / "latest")
    with pytest.raises(OttlaError, match="holds no history"):
        ottla.lake.changelog_as_of(str(tmp_path / "latest"), EPOCH)
    with pytest.raises(OttlaError, match="has no time zone"):
        ottla.lake.changelog_as_of(str(tmp_path / "latest"), datetime(2026, 1, 1))
