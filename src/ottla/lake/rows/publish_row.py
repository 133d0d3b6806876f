"""Converts rows of a DataFrame or a file to records, and checks their columns. Pure.

The columns are those of Spark's Kafka sink, and `timestamp`. The column `value` is required; other
columns may be absent or null.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.codec import Header

COLUMNS = ("key", "value", "headers", "topic", "partition", "timestamp")
_BYTES = ("binary", "string")
# Spark's names for the types that a column may have.
_SPARK_TYPES: Mapping[str, tuple[str, ...]] = {
    "key": _BYTES,
    "value": _BYTES,
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}


class Row(NamedTuple):
    """A record to send.

    If `topic` is None, the record goes to the topic of the options. If `partition` is None, the
    producer chooses it. If `timestamp_ms` is None, it is the time of sending.
    """

    key: bytes | None
    value: bytes | None
    headers: list[Header]
    topic: str | None
    partition: int | None
    timestamp_ms: int | None


def require_columns(types: Mapping[str, str], *, has_topic: bool) -> None:
    """Check a DataFrame's columns. `types` are Spark's names of their types. Raises OttlaError.

    Columns other than `COLUMNS` are ignored, as in Spark's Kafka sink.
    """
    for name in types.keys() & COLUMNS:
        if types[name] not in _SPARK_TYPES[name]:
            fitting = " or ".join(_SPARK_TYPES[name])
            raise _wrong(f"column {name!r} is {types[name]}, not {fitting}")
    if "value" not in types:
        raise _wrong(
            "there is no column 'value'; select at least this one (to_json(struct('*')) AS value "
            "takes all columns)"
        )
    if not has_topic and "topic" not in types:
        raise _wrong('to which topic? Add .option("topic", NAME), or a column `topic`')


def rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of a batch, whose columns were checked, as records."""
    columns: dict[str, list[Any]] = {
        name: _plain(name, batch.column(place))
        for place, name in enumerate(batch.schema.names)
        if name in COLUMNS
    }
    absent = [None] * batch.num_rows
    for key, value, headers, topic, partition, timestamp_ms in zip(
        *(columns.get(name, absent) for name in COLUMNS), strict=True
    ):
        pairs = [(entry["key"], entry["value"]) for entry in headers] if headers else []
        yield Row(key, value, pairs, topic, partition, timestamp_ms)


def _plain(name: str, column: pa.Array) -> list[Any]:
    """Return a column as Python values: keys and values as bytes, times in milliseconds."""
    if name in ("key", "value") and not pa.types.is_binary(column.type):
        column = pc.cast(column, pa.binary())
    elif name == "timestamp":
        # Round microseconds down to milliseconds, as Spark does.
        column = pc.cast(pc.floor_temporal(column, unit="millisecond"), pa.timestamp("ms", "UTC"))
        column = pc.cast(column, pa.int64())
    plain: list[Any] = column.to_pylist()
    return plain


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"sink ottla: {what}")
