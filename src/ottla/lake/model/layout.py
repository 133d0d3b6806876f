"""The columns of a table's files: first the raw columns, then the typed columns.

Manifests record the typed columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ottla.lake.model.decode_spec import Column, Side, free_name, require_names
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.manifest import Manifest, TableSchema
from ottla.lake.model.schema import ROW_SCHEMA, VALIDITY
from ottla.lake.model.types import Type, parse_type


@dataclass(frozen=True, slots=True)
class TypedSchema:
    """The typed columns of keys and of values. `number` grows with each change."""

    number: int = 1
    key: tuple[Column, ...] = ()
    value: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        require_names([*self.key, *self.value])

    def of(self, side: Side) -> tuple[Column, ...]:
        return self.key if side == "key" else self.value

    def with_columns(self, side: Side, columns: tuple[Column, ...]) -> "TypedSchema":
        return replace(self, key=columns) if side == "key" else replace(self, value=columns)

    @property
    def names(self) -> list[str]:
        return [one.name for one in (*self.key, *self.value)]

    @property
    def fields(self) -> list[Any]:
        """Return Arrow fields. All are nullable, because a record without a value has no fields."""
        return [pa.field(one.name, one.type.arrow) for one in (*self.key, *self.value)]


def table_schema(schema: TypedSchema, decode: Mapping[str, Any]) -> TableSchema:
    """Return the schema as a manifest stores it."""
    columns = (
        {
            "name": one.name,
            "type": str(one.type),
            "nullable": one.nullable,
            "of": side,
            "source": list(one.source),
            "also": [list(path) for path in one.also],
        }
        for side, columns in (("key", schema.key), ("value", schema.value))
        for one in columns
    )
    return TableSchema(schema.number, tuple(columns), decode)


def typed_schema(recorded: TableSchema) -> TypedSchema:
    """Return the schema that a manifest records, from the result of `table_schema`."""
    sides: dict[str, list[Column]] = {"key": [], "value": []}
    for one in recorded.columns:
        also = tuple(tuple(path) for path in one["also"])
        column = Column(
            one["name"], parse_type(one["type"]), bool(one["nullable"]), tuple(one["source"]), also
        )
        sides[one["of"]].append(column)
    return TypedSchema(recorded.number, tuple(sides["key"]), tuple(sides["value"]))


def columns_for(found: Type, side: Side, taken: set[str]) -> tuple[Column, ...]:
    """Return the columns for values of a type: one for each field of a struct, else a single one.

    `taken` has the names of other columns in lower case; the new names are added to it. A column
    whose name is taken gets the prefix `key_` or `value_`.
    """
    if found.kind != "struct":
        name = free_name(f"{side}_decoded", side, taken)
        taken.add(name.lower())
        return (Column(name, found),)
    columns = []
    for field, kind in found.fields:
        name = free_name(field, side, taken)
        taken.add(name.lower())
        columns.append(Column(name, kind, source=(field,)))
    return tuple(columns)


# The column that replaces key, value and headers in tables that do not keep them.
ROW_HASH = pa.field("row_hash", pa.binary(16))
_NOT_KEPT = ("key", "value", "headers")
# Additional columns in the file of a load's dead letters.
DEAD_FIELDS = (
    pa.field("stage", pa.string()),
    pa.field("error", pa.string()),
    pa.field("schema_id", pa.int64()),
    # The record's timestamp, which may not fit into the column `timestamp`.
    pa.field("timestamp_ms", pa.int64()),
)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The columns of a file. `added` are the columns after the raw columns."""

    added: tuple[Any, ...] = ()
    keep_raw: bool = True

    @property
    def schema(self) -> Any:
        """Return the Arrow schema with which the file is read."""
        raw = list(ROW_SCHEMA)
        if not self.keep_raw:
            raw = [ROW_HASH, *(one for one in raw if one.name not in _NOT_KEPT)]
        return pa.schema([*raw, *self.added])


RAW = FileLayout()
DEAD = FileLayout(DEAD_FIELDS)


def in_columns(rows: Any, schema: Any) -> Any:
    """Return `rows` with the columns and types of `schema`. Missing columns are null."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def layout_of(schema: TableSchema | None) -> FileLayout:
    """Return the layout of the data files that a load with this schema writes."""
    if schema is None:
        return RAW
    return FileLayout(tuple(typed_schema(schema).fields), bool(schema.decode.get("keep_raw", True)))


def buckets_of_table(newest: Manifest | None) -> Buckets:
    """Return how a table's files are divided by event time."""
    events = newest.events if newest else None
    return Buckets(events.column, events.by) if events else ONE_BUCKET


def columns_of(newest: Manifest | None) -> Any:
    """Return an Arrow schema: raw columns, then typed columns, then the times of a history."""
    if newest is None:
        return RAW.schema
    columns = layout_of(newest.table_schema).schema
    is_history = newest.changelog is not None and newest.changelog.keeps == "history"
    return pa.schema([*columns, *VALIDITY]) if is_history else columns
