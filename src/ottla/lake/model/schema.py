"""The columns of a row as an Arrow schema; Spark sees the same names and types."""

from typing import NamedTuple

import pyarrow as pa

HEADER_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

ROW_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", HEADER_TYPE))),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        # Kafka counts milliseconds; Spark has only microseconds.
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestamp_type", pa.int32()),  # 0 create time, 1 log append time.
    ]
)
# Columns that have a value in each row, as has `row_hash`; each other column may be null.
NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp_type", "row_hash"})
# Further columns of a history: the time span in which a row was the latest of its key.
VALIDITY = tuple(
    pa.field(name, pa.timestamp("us", tz="UTC")) for name in ("valid_from", "valid_to")
)


class SourceColumn(NamedTuple):
    """A column of the data source: its name in ROW_SCHEMA, and its type in Spark."""

    in_row: str
    spark_type: str


# The columns of Spark's own connector, in its order.
SOURCE_COLUMNS = {
    "key": SourceColumn("key", "BINARY"),
    "value": SourceColumn("value", "BINARY"),
    "topic": SourceColumn("topic", "STRING"),
    "partition": SourceColumn("partition", "INT"),
    "offset": SourceColumn("offset", "BIGINT"),
    "timestamp": SourceColumn("timestamp", "TIMESTAMP"),
    "timestampType": SourceColumn("timestamp_type", "INT"),
    "headers": SourceColumn("headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
}


_MARK = "\ufffdhex:"


def header_name_text(name: bytes) -> str:
    """Return a header name as text; a name that is not UTF-8 becomes hexadecimal digits."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return _MARK + name.hex()
    return _MARK + name.hex() if text.startswith(_MARK) else text


def header_name_bytes(text: str) -> bytes:
    """Return the bytes of a header name, from the result of `header_name_text`."""
    return bytes.fromhex(text.removeprefix(_MARK)) if text.startswith(_MARK) else text.encode()
