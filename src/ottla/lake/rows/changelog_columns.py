"""The columns of a changelog table's rows, and the rule that says which rows are deletions.

Typed columns follow the raw columns. They can be derived from a row's key and value, so rows of an
earlier schema are decoded again when they are rewritten. A deletion is a record with a null value,
or a Debezium envelope whose operation is `d`.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Decode, decode_from
from ottla.lake.model.layout import TypedSchema, typed_schema
from ottla.lake.model.manifest import TableSchema
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.sorted_rows import RowSorter, RowSorting

Flags = npt.NDArray[np.bool_]

_DELETION = "d"
# Debezium's truncate and message: they do not change the row of a key.
_OF_NO_ROW = ("t", "m")


@dataclass(frozen=True, slots=True)
class Columns:
    """The typed columns of a changelog table. `sorting` is None if it has none. Can be pickled."""

    sorting: RowSorting | None = None

    @property
    def number(self) -> int:
        """Return the number of the typed schema, 0 if there are only raw columns."""
        return self.sorting.schema.number if self.sorting and self.typed else 0

    @property
    def typed(self) -> tuple[Any, ...]:
        """Return the typed columns as Arrow fields."""
        return tuple(self.sorting.schema.fields) if self.sorting else ()

    @property
    def schema(self) -> Any:
        """Return all columns of a change: the raw columns, then the typed columns."""
        return pa.schema([*ROW_SCHEMA, *self.typed])

    @property
    def operation(self) -> str | None:
        """Return the name of the column with Debezium's operation; None if there is none."""
        return operation_of(self.sorting.decode, self.sorting.schema) if self.sorting else None

    def decoded(self, rows: pa.Table) -> pa.Table:
        """Decode rows of a file with another schema again, to these typed columns.

        Values that cannot be decoded become null, as earlier rules may have accepted such rows.
        """
        if self.sorting is None:
            return rows
        decode = replace(self.sorting.decode, on_bad_record="null")
        sorter = RowSorter(RowSorting(decode, self.sorting.schema))
        raw = rows.select(ROW_SCHEMA.names).combine_chunks().to_batches()
        parts = [sorter.sort(batch, {}).typed for batch in raw if batch.num_rows]
        found = rows.select(ROW_SCHEMA.names)
        for at, field in enumerate(self.typed):
            found = found.append_column(
                field, pa.chunked_array([part[at] for part in parts], field.type)
            )
        return found


def columns_from(schema: TableSchema | None) -> Columns:
    """Return the columns that a manifest records."""
    if schema is None:
        return Columns()
    return Columns(RowSorting(decode_from(schema.decode), typed_schema(schema)))


def operations_only(columns: Columns) -> Columns:
    """Return only the columns that are needed to recognize deletions."""
    name = columns.operation
    if columns.sorting is None or name is None:
        return Columns()
    kept = tuple(one for one in columns.sorting.schema.value if one.name == name)
    decode = replace(columns.sorting.decode, key=None, on_bad_record="null")
    return Columns(RowSorting(decode, TypedSchema(columns.number, (), kept)))


def operation_of(decode: Decode, schema: TypedSchema) -> str | None:
    """Return the name of the column with Debezium's operation; None if there is none."""
    if decode.value is None or not decode.value.debezium:
        return None
    return next((one.name for one in schema.value if one.source == ("op",)), None)


def holds(rows: pa.Table | pa.RecordBatch, operation: str | None) -> Flags:
    """Return a flag for each row: True for a value, False for a deletion.

    `operation` is the column with Debezium's operation, or None.
    """
    found: Flags = rows.column("value").is_valid().to_numpy(zero_copy_only=False)
    if operation is not None:
        deleted = pc.fill_null(pc.equal(rows.column(operation), _DELETION), False)
        found = found & ~deleted.to_numpy(zero_copy_only=False)
    return found


def of_no_row(rows: pa.RecordBatch, operation: str | None) -> Flags:
    """Return a flag for each row: True for Debezium's truncate and message, which have no key."""
    if operation is None:
        return np.zeros(rows.num_rows, np.bool_)
    found: Flags = pc.is_in(rows.column(operation), pa.array(_OF_NO_ROW)).to_numpy(False)
    return found


def require_fitting(decode: Decode | None, before: TableSchema | None, is_new: bool) -> None:
    """Raise OttlaError if `decode` drops raw columns, or changes which records are deletions."""
    if decode is None:
        return
    if not decode.keep_raw:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "a changelog table needs the keys and values of its rows: leave out --drop-raw "
            "(keep_raw=False)",
        )
    known = decode_from(before.decode) if before else None
    if not is_new and is_debezium(known) is not is_debezium(decode):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "whether values are Debezium's envelopes decides which records are deletions, and so "
            "it can't change later: make another table in a folder of its own",
        )


def is_debezium(decode: Decode | None) -> bool:
    """Return whether values are Debezium's envelopes."""
    return decode is not None and decode.value is not None and decode.value.debezium
