"""Converts Debezium's envelopes, which contain a database row before and after a change.

An envelope becomes four columns: `op` (c, u, d, r, t), `before`, `after`, and `source_ts`, the time
of the change in the database. The fields of a key become columns. If a converter wrote a schema and
a payload, the payload is decoded, and Kafka Connect's schema decides the types of the columns.
"""

from collections.abc import Mapping
from typing import Any

from ottla.lake.model.decode_spec import Column, Side
from ottla.lake.model.types import Type, decimal_of, list_of, map_of, plain, struct_of
from ottla.lake.rows.value_reader import BadValue, shown

_OPERATIONS = frozenset("cudrtm")
_SOURCE_TIME = plain("timestamp(ms)")
_CONNECT = {
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "float": "float32",
    "float32": "float32",
    "double": "float64",
    "float64": "float64",
    "boolean": "boolean",
    "string": "string",
    "bytes": "binary",
}
# The types of columns for logical types of Kafka Connect and Debezium.
CONNECT_TYPES = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time(ms)",
    "org.apache.kafka.connect.data.Timestamp": "timestamp(ms)",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time(ms)",
    "io.debezium.time.MicroTime": "time(us)",
    "io.debezium.time.Timestamp": "datetime(ms)",
    "io.debezium.time.MicroTimestamp": "datetime(us)",
}
_TEXT_TYPES = {"io.debezium.time.ZonedTimestamp": "timestamp(us)"}


def flattened(value: Any, side: Side) -> Any:
    """Return an envelope as an object with the fields of the columns.

    Raises BadValue if the value is not an envelope.
    """
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        value = value["payload"]
    if value is None or side == "key":
        return value
    op = value.get("op") if isinstance(value, dict) else value
    if not isinstance(value, dict) or not isinstance(op, str) or op not in _OPERATIONS:
        raise BadValue(f"no envelope of Debezium: its op is {shown(op)}")
    source = value.get("source")
    return {
        "op": op,
        "before": value.get("before"),
        "after": value.get("after"),
        "source_ts": source.get("ts_ms") if isinstance(source, dict) else None,
    }


def flattened_type(found: Type | None, side: Side) -> Type | None:
    """Return the type of flattened values for the type of an envelope; None if it is unknown."""
    if found is None or side == "key":
        return found
    fields = dict(found.fields)
    rows = [fields[name] for name in ("after", "before") if name in fields]
    return envelope_type(rows[0]) if rows and rows[0].kind == "struct" else None


def envelope_type(row: Type) -> Type:
    """Return the type of flattened values for rows of this type."""
    return struct_of(
        (("op", plain("string")), ("before", row), ("after", row), ("source_ts", _SOURCE_TIME))
    )


def envelope_columns(row: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of envelopes whose rows have the declared columns."""
    kind = envelope_type(struct_of(tuple((one.name, one.type) for one in row)))
    return tuple(Column(name, each, source=(name,)) for name, each in kind.fields)


def connect_type(value: Any, side: Side) -> Type | None:
    """Return the type in the Connect schema beside a payload; None if there is no schema."""
    if not isinstance(value, dict) or value.keys() != {"schema", "payload"}:
        return None
    found = _connect_type(value["schema"], 0)
    return flattened_type(found, side)


def _connect_type(schema: Any, depth: int) -> Type | None:
    if not isinstance(schema, Mapping) or depth > 16:
        return None
    kind, name = schema.get("type"), schema.get("name")
    match kind:
        case "struct":
            fields = []
            for one in schema.get("fields") or ():
                found = _connect_type(one, depth + 1)
                if found is not None:
                    fields.append((str(one.get("field")), found))
            return struct_of(tuple(fields))
        case "array" | "map":
            inner = _connect_type(schema.get("items" if kind == "array" else "values"), depth + 1)
            return None if inner is None else (list_of if kind == "array" else map_of)(inner)
    if name == "org.apache.kafka.connect.data.Decimal":
        parameters = schema.get("parameters") or {}
        scale = int(parameters.get("scale", 0))
        precision = int(parameters.get("connect.decimal.precision", 38))
        return decimal_of(min(precision, 38), scale) if 0 <= scale <= min(precision, 38) else None
    logical = CONNECT_TYPES.get(str(name)) or _TEXT_TYPES.get(str(name))
    if logical is not None:
        return plain(logical)
    return plain(_CONNECT[kind]) if kind in _CONNECT else None
