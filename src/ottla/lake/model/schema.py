"""The columns of a row as an Arrow schema; Spark sees the same names and types."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
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


# numpy makes the buffers of these arrays, as `pa.array` imports pandas if it is installed. That
# takes half a second of CPU time in each process that runs tasks.


def byte_strings(values: Sequence[bytes | None], kind: Any = pa.binary()) -> Any:  # noqa: B008
    """Return an Arrow array of `kind`: binary, or string if all values are UTF-8."""
    filled = [value or b"" for value in values]
    bounds = np.zeros(len(filled) + 1, np.int32)
    np.cumsum([len(value) for value in filled], out=bounds[1:])
    buffers = [bitmap([value is not None for value in values]), pa.py_buffer(bounds)]
    return pa.Array.from_buffers(kind, len(filled), [*buffers, pa.py_buffer(b"".join(filled))])


def numbers(values: npt.NDArray[Any], kind: Any, known: pa.Buffer | None = None) -> Any:
    """Return an Arrow array of `kind`, whose values are the numbers, and null where not `known`."""
    content = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [known, content])


def bitmap(known: npt.ArrayLike) -> pa.Buffer:
    """Return which values of an array are not null, as Arrow keeps it."""
    return pa.py_buffer(np.packbits(np.asarray(known, np.bool_), bitorder="little"))
