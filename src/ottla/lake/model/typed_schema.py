"""The typed columns of a table, as recorded in its manifests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ottla.lake.model.decode_spec import Column, Side, free_name, require_names
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
        """Return Arrow fields, all nullable: a record without a value has no fields."""
        return [pa.field(one.name, one.type.arrow) for one in (*self.key, *self.value)]


def to_json(schema: TypedSchema) -> dict[str, Any]:
    """Return the schema in the form of a manifest."""
    return {
        "number": schema.number,
        "columns": [
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
        ],
    }


def from_json(content: Mapping[str, Any]) -> TypedSchema:
    """Parse the result of `to_json`."""
    sides: dict[str, list[Column]] = {"key": [], "value": []}
    for one in content["columns"]:
        sides[one["of"]].append(
            Column(
                one["name"],
                parse_type(one["type"]),
                bool(one["nullable"]),
                tuple(one["source"]),
                tuple(tuple(path) for path in one["also"]),
            )
        )
    return TypedSchema(int(content["number"]), tuple(sides["key"]), tuple(sides["value"]))


def columns_of(found: Type, side: Side, taken: set[str]) -> tuple[Column, ...]:
    """Return the columns for values of a type: one per field of a struct, else a single one.

    A name that another column has (`taken`, in lower case; names are added to it) is prefixed with
    the side.
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
