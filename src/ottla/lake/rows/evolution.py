"""Adapts a table's typed columns to its records: columns are inferred, added, widened or renamed.

Columns are never removed, and their types only become wider. If a declaration needs another change,
it is an error; if a record needs one, it is a bad record. A text is always a string, even if it
looks like a time, because the next record may have another text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Column, SchemaRules, Side, free_name
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.types import Type, decimal_of, list_of, map_of, plain, struct_of, type_at

# The path of names to a nested field. `[]` and `{}` are elements of lists and maps.
Path = tuple[str, ...]

_SIDES: tuple[Side, Side] = ("key", "value")
_INT64 = 2**63
# An object with more fields than this becomes a column of type json.
_FIELDS_MAX = 500
_DEPTH_MAX = 16
_INTEGERS = ("int8", "int16", "int32", "int64")
_JSON = plain("json")


def type_of(value: Any, depth: int = 0) -> Type | None:
    """Return the type of a JSON value; None if it is unknown (null, an empty list)."""
    match value:
        case None:
            return None
        case bool():
            return plain("boolean")
        case int() if -_INT64 <= value < _INT64:
            return plain("int64")
        case int() if abs(value) < 10**38:
            return decimal_of(38, 0)
        case float():
            return plain("float64")
        case str():
            return plain("string")
        case bytes():
            return plain("binary")
        case list() if depth < _DEPTH_MAX:
            found = merged_all(type_of(one, depth + 1) for one in value)
            return None if found is None else list_of(found)
        case dict() if 0 < len(value) <= _FIELDS_MAX and depth < _DEPTH_MAX:
            fields = [(name, type_of(one, depth + 1)) for name, one in value.items()]
            known = tuple((name, kind) for name, kind in fields if kind is not None)
            return struct_of(known) if known else None
        case dict() if not value:
            return None
    return _JSON


def merged_all(types: Iterable[Type | None]) -> Type | None:
    """Return the type into which all `types` fit; None if all of them are None."""
    found = None
    for one in types:
        if one is not None:
            found = one if found is None else merged(found, one)
    return found


def merged(first: Type, second: Type) -> Type:
    """Return the type into which both fit, which is `json` if no other does."""
    wide = widened(first, second)
    if wide is not None:
        return wide
    if {first.kind, second.kind} <= {*_INTEGERS, "float32", "float64"}:
        return plain("float64")
    if first.kind == second.kind == "list":
        return list_of(merged(first.element, second.element))
    if first.kind == second.kind == "struct":
        fields = dict(first.fields)
        for name, kind in second.fields:
            fields[name] = merged(fields.get(name, kind), kind)
        return struct_of(tuple(fields.items())) if len(fields) <= _FIELDS_MAX else _JSON
    return _JSON


def widened(narrow: Type, other: Type) -> Type | None:
    """Return the type that holds all values of both exactly; None if there is none.

    Only changes that table formats allow are made: larger integers, a larger float, more digits,
    more fields. The unit of a time and the scale of a decimal never change: otherwise the same
    bytes of a record could mean another value, and Iceberg does not allow it.
    """
    if narrow == other:
        return narrow
    kinds = (narrow.kind, other.kind)
    if all(kind in _INTEGERS for kind in kinds):
        return plain(max(kinds, key=_INTEGERS.index))
    if set(kinds) == {"float32", "float64"}:
        return plain("float64")
    if kinds == ("decimal", "decimal"):
        if narrow.scale != other.scale:
            return None
        return decimal_of(max(narrow.precision, other.precision), narrow.scale)
    if kinds == ("struct", "struct"):
        fields = dict(narrow.fields)
        for name, kind in other.fields:
            found = widened(fields.get(name, kind), kind)
            if found is None:
                return None
            fields[name] = found
        return struct_of(tuple(fields.items())) if len(fields) <= _FIELDS_MAX else None
    if kinds in (("list", "list"), ("map", "map")):
        inner = widened(narrow.element, other.element)
        return inner and (list_of(inner) if narrow.kind == "list" else map_of(inner))
    return None


@dataclass(frozen=True, slots=True)
class NewField:
    """A field without a column, or with a column that is too narrow."""

    side: Side
    path: Path
    type: Type
    row: int  # The first row with the field.


class DoesNotFit(Exception):
    """Raised if a value does not fit into its column. The message says why."""


@dataclass(frozen=True, slots=True)
class FieldRules:
    """Decides what to do with fields without a column, and with values too wide for their column.

    `known` has the types of the values' schemas, which are preferred to types inferred from values.
    """

    rules: SchemaRules
    known: dict[int, Type] = field(default_factory=dict)

    def added(self, path: Path, value: Any) -> Type | None:
        """Return the type of a column to add; None to leave the field out.

        Raises DoesNotFit if the field makes its record a bad record.
        """
        if self.rules.add == "ignore":
            return None
        if self.rules.add == "reject":
            raise DoesNotFit("no column has this field, and the rule is to reject such records")
        return self._type_at(path) or type_of(value)

    def widened(self, path: Path, narrow: Type, value: Any) -> Type | None:
        """Return the wider type that a column gets for `value`; None if it may not be widened."""
        if self.rules.widen == "reject":
            return None
        other = self._type_at(path) or type_of(value)
        wide = None if other is None else widened(narrow, other)
        return None if wide == narrow else wide

    def _type_at(self, path: Path) -> Type | None:
        return merged_all(type_at(kind, path) for kind in self.known.values())


IGNORE = FieldRules(SchemaRules(add="ignore", widen="reject"))

# Fields of Debezium's envelopes that have the same type.
_TWINS = {"before": "after", "after": "before"}


def evolved(
    schema: TypedSchema, news: Sequence[NewField], *, envelopes: frozenset[Side] = frozenset()
) -> tuple[TypedSchema, list[str]]:
    """Return the schema with all of `news`, and a text for each change, in the same order.

    `envelopes` are the sides with Debezium's envelopes, whose `before` and `after` have one type.
    """
    changes = []
    found = schema
    for new in news:
        changed, what = _with(found, new)
        twin = _TWINS.get(new.path[0]) if new.path and new.side in envelopes else None
        if twin is not None and len(new.path) > 1:
            changed, _ = _with(changed, replace(new, path=(twin, *new.path[1:])))
        changes.append(what)
        found = changed
    return (replace(found, number=schema.number + 1) if found != schema else schema), changes


def renamed(
    schema: TypedSchema, rename: Sequence[tuple[str, str]]
) -> tuple[TypedSchema, list[str]]:
    """Rename columns by pairs of a new and an old name; return the schema and the changes.

    A rename that was done before is skipped. A renamed column gets the value of the field with the
    new name, or with the old name if there is none. Raises OttlaError if no column has the old
    name, or another column has the new name.
    """
    found, changes = schema, []
    for new, old in rename:
        side, column = _named(found, old)
        if column is None:
            _, done = _named(found, new)
            if done is not None:
                continue
            raise _refused(f"there is no column {old} to rename to {new}")
        if _named(found, new)[1] is not None:
            raise _refused(f"{old} can't be renamed to {new}: there is a column of that name")
        path = (*column.source[:-1], new) if column.source else ()
        other = replace(
            column, name=new, source=path, also=(column.source, *column.also) if path else ()
        )
        columns = tuple(other if one is column else one for one in found.of(side))
        found = found.with_columns(side, columns)
        changes.append(f"rename {old} to {new}")
    return (replace(found, number=schema.number + 1) if changes else schema), changes


def reconciled(schema: TypedSchema, wanted: TypedSchema) -> tuple[TypedSchema, list[str]]:
    """Apply a declaration's new columns and wider types; return the schema and the changes.

    Columns that the declaration leaves out are kept, and so is a type that is wider than the
    declared type. Raises OttlaError if a column would need another type.
    """
    found, changes = schema, []
    for side in _SIDES:
        columns = {one.name: one for one in found.of(side)}
        for one in wanted.of(side):
            before = columns.get(one.name)
            if before is None:
                columns[one.name] = one
                changes.append(f"add {one.name} {one.type}")
                continue
            wide = widened(before.type, one.type)
            if wide is None:
                raise _refused(
                    f"the column {one.name} is {before.type} in the table and can't become "
                    f"{one.type}: declare it under another name"
                )
            if wide != before.type:
                columns[one.name] = replace(before, type=wide)
                changes.append(f"widen {one.name} from {before.type} to {wide}")
        found = found.with_columns(side, tuple(columns.values()))
    return (replace(found, number=schema.number + 1) if changes else schema), changes


def _with(schema: TypedSchema, new: NewField) -> tuple[TypedSchema, str]:
    """Return the schema with one new or wider field, and a text of the change."""
    columns = list(schema.of(new.side))
    words = ".".join(new.path)
    for place, one in enumerate(columns):
        for source in (one.source, *one.also):
            if new.path[: len(source)] == source:
                kind = _grown(one.type, new.path[len(source) :], new.type)
                if kind == one.type:
                    return schema, f"keep {words}"
                columns[place] = replace(one, type=kind)
                added = len(new.path) > len(source)
                what = f"add {words} {new.type}" if added else f"widen {words} to {kind}"
                return schema.with_columns(new.side, tuple(columns)), what
    taken = {name.lower() for name in schema.names}
    name = free_name(new.path[-1] if new.path else f"{new.side}_decoded", new.side, taken)
    columns.append(Column(name, new.type, source=new.path))
    words = f"{words} as {name}" if name != words and words else name
    return schema.with_columns(new.side, tuple(columns)), f"add {words} {new.type}"


def _grown(kind: Type, path: Path, new: Type) -> Type:
    """Return the type with the field at `path` added or widened."""
    if not path:
        return widened(kind, new) or kind
    name, *rest = path
    if kind.kind in ("list", "map"):
        inner = _grown(kind.element, tuple(rest), new)
        return list_of(inner) if kind.kind == "list" else map_of(inner)
    if kind.kind != "struct":
        return kind
    fields = dict(kind.fields)
    fields[name] = _grown(fields[name], tuple(rest), new) if name in fields else new
    return struct_of(tuple(fields.items()))


def _named(schema: TypedSchema, name: str) -> tuple[Side, Column | None]:
    for side in _SIDES:
        for one in schema.of(side):
            if one.name == name:
                return side, one
    return "value", None


def _refused(message: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"{message}; nothing was loaded")
