"""The columns of a table's files: first the raw ones, then the typed ones."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.lake.model import typed_schema
from ottla.lake.model.manifest import TableSchema
from ottla.lake.model.schema import ROW_SCHEMA

# Replaces key, value and headers in tables that do not keep them.
ROW_HASH = pa.field("row_hash", pa.binary(16))
_NOT_KEPT = ("key", "value", "headers")
# Additional columns in the file of a load's dead letters.
DEAD_FIELDS = (
    pa.field("stage", pa.string()),
    pa.field("error", pa.string()),
    pa.field("schema_id", pa.int64()),
    # The record's own time, which may not fit into the column `timestamp`.
    pa.field("timestamp_ms", pa.int64()),
)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The columns of a file. `added` follow the raw ones."""

    added: tuple[Any, ...] = ()
    keep_raw: bool = True

    @property
    def schema(self) -> Any:
        """Return the columns as they are read back."""
        raw = list(ROW_SCHEMA)
        if not self.keep_raw:
            raw = [ROW_HASH, *(one for one in raw if one.name not in _NOT_KEPT)]
        return pa.schema([*raw, *self.added])


RAW = FileLayout()
DEAD = FileLayout(DEAD_FIELDS)


def in_columns(rows: Any, schema: Any) -> Any:
    """Return the table `rows` in the columns and types of `schema`; missing columns are null."""
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
    typed = typed_schema.from_json({"number": schema.number, "columns": schema.columns})
    return FileLayout(tuple(typed.fields), bool(schema.decode.get("keep_raw", True)))
