"""From rows to the batches of a task."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from ottla.base.errors import OttlaError
from ottla.client import PreparedBatch
from ottla.lake.edges.sink import as_arrow
from ottla.lake.edges.sink_batches import Preparer
from ottla.lake.rows.publish_row import Row, require_columns, rows
from ottla.record.header import read_header
from ottla.record.reader import records

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def preparer(batch_bytes: int = 1 << 20, topic: str | None = "t") -> Preparer:
    return Preparer(topic, lambda _: 3, lambda: 777, compression=0, batch_bytes=batch_bytes)


def values(batch: PreparedBatch) -> list[bytes | None]:
    return [record.value for record in records(batch.content, 0, read_header(batch.content))]


def test_columns_become_records() -> None:
    """Text as UTF-8, times in milliseconds; absent columns are None, others left out."""
    at = datetime(2026, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC)
    batch = pa.record_batch(
        {
            "value": pa.array(["a", None]),
            "key": pa.array([b"\xff", None]),
            "headers": pa.array([[("n", b"1"), ("n", None)], None], HEADERS),
            "timestamp": pa.array([at, None], pa.timestamp("us", "UTC")),
            "offset": pa.array([5, 6]),
        }
    )
    assert list(rows(batch)) == [
        Row(b"\xff", b"a", [("n", b"1"), ("n", None)], None, None, 1_767_225_600_001),
        Row(None, None, [], None, None, None),
    ]


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({"value": "string", "partition": "bigint"}, "column 'partition' is bigint, not int"),
        ({"value": "int"}, "column 'value' is int, not binary or string"),
        ({"key": "string"}, "no column 'value'"),
        ({"value": "string"}, "to which topic"),
    ],
)
def test_columns_that_do_not_fit_are_named(types: dict[str, str], words: str) -> None:
    with pytest.raises(OttlaError, match=words):
        require_columns(types, has_topic=False)


def test_columns_of_the_kafka_sink_fit() -> None:
    types = {
        "key": "binary",
        "value": "string",
        "headers": "array<struct<key:string,value:binary>>",
        "topic": "string",
        "partition": "int",
        "timestamp": "timestamp",
    }
    require_columns(types, has_topic=False)
    require_columns({"value": "binary"}, has_topic=True)


def test_keys_go_where_kafkas_producers_put_them() -> None:
    """murmur2 of the key, as of 21 → 0 of 3 partitions and so on in Kafka's own client."""
    made = preparer()
    for number in range(6):
        assert made.add(Row(b"%d" % number, b"v%d" % number, [], None, None, None)) is None
    placed = {batch.partition: values(batch) for batch in made.rest()}
    from ottla.base.murmur2 import partition_of

    expected: dict[int, list[bytes]] = {}
    for number in range(6):
        expected.setdefault(partition_of(b"%d" % number, 3), []).append(b"v%d" % number)
    assert placed == expected


def test_rows_of_a_partition_stay_in_order_over_batches() -> None:
    """A full batch goes, and the next begins."""
    made = preparer(batch_bytes=200)
    found = [made.add(Row(b"k", b"%04d" % n, [], None, 1, 5)) for n in range(100)]
    batches = [batch for batch in found if batch is not None] + list(made.rest())
    assert len(batches) > 5
    assert {batch.partition for batch in batches} == {1}
    assert [v for batch in batches for v in values(batch)] == [b"%04d" % n for n in range(100)]
    assert sum(batch.record_count for batch in batches) == 100


def test_rows_without_a_key_take_partitions_in_turn() -> None:
    """One fills a batch of its own, so that batches are not torn into small ones."""
    made = preparer(batch_bytes=200)
    found = [made.add(Row(None, b"%04d" % n, [], None, None, 5)) for n in range(60)]
    batches = [batch for batch in found if batch is not None]
    assert [batch.partition for batch in batches] == [n % 3 for n in range(len(batches))]


def test_topic_of_the_options_wins() -> None:
    """As in Spark's Kafka sink."""
    made = preparer(topic="option")
    made.add(Row(None, b"v", [], "column", 0, None))
    assert [batch.topic for batch in made.rest()] == ["option"]
    with pytest.raises(OttlaError, match="a row has no topic"):
        preparer(topic=None).add(Row(None, b"v", [], None, 0, None))
    with pytest.raises(OttlaError, match="a row's partition is 3; t has 0 to 2"):
        preparer().add(Row(None, b"v", [], None, 3, None))


def test_rows_of_spark_4_0_become_arrow_batches() -> None:
    """It gives stream writers rows, with structs as rows in rows."""
    found = as_arrow(
        [(b"k", "v", [("n", b"1")], datetime(2026, 1, 1, tzinfo=UTC)), (None, None, None, None)],
        ["key", "value", "headers", "timestamp"],
    )
    assert [row for batch in found for row in rows(batch)] == [
        Row(b"k", b"v", [("n", b"1")], None, None, 1_767_225_600_000),
        Row(None, None, [], None, None, None),
    ]
