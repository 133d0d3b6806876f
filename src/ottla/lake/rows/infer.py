"""Infers types from values: of a sample of JSON, and of a new field.

Texts stay strings: a text that looks like a time in a sample may be another text in the next
record.
"""

from typing import Any

from ottla.lake.model.types import Type, decimal_of, list_of, map_of, plain, struct_of

_INT64 = 2**63
# Objects with more names than this become maps rather than records.
_FIELDS_MAX = 500
_DEPTH_MAX = 16
_INTEGERS = ("int8", "int16", "int32", "int64")
_JSON = plain("json")


def type_of(value: Any, depth: int = 0) -> Type | None:
    """Return the type of a JSON value; None if it shows none (null, an empty list)."""
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
            found = None
            for one in value:
                found = merged(found, type_of(one, depth + 1))
            return None if found is None else list_of(found)
        case dict() if 0 < len(value) <= _FIELDS_MAX and depth < _DEPTH_MAX:
            fields = [(name, type_of(one, depth + 1)) for name, one in value.items()]
            known = tuple((name, kind) for name, kind in fields if kind is not None)
            return struct_of(known) if known else None
        case dict() if not value:
            return None
    return _JSON


def merged(first: Type | None, second: Type | None) -> Type | None:
    """Return the type that both fit into; `json` if there is none better."""
    if first is None or second is None or first == second:
        return second if first is None else first
    wide = widened(first, second)
    if wide is not None:
        return wide
    if {first.kind, second.kind} <= {*_INTEGERS, "float32", "float64"}:
        return plain("float64")
    if first.kind == second.kind == "list":
        inner = merged(first.element, second.element)
        assert inner is not None
        return list_of(inner)
    if first.kind == second.kind == "struct":
        return _merged_structs(first, second)
    return _JSON


def widened(narrow: Type, other: Type) -> Type | None:
    """Return the type that holds all values of both, exactly; None if there is none.

    Follows the growth of columns that table formats allow: larger integers, a larger float, more
    digits, more fields. The unit of a time and the scale of a decimal stay: otherwise the same
    bytes of a record could mean another value, and Iceberg has no such change.
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
        return _widened_structs(narrow, other)
    if kinds in (("list", "list"), ("map", "map")):
        inner = widened(narrow.element, other.element)
        return inner and (list_of(inner) if narrow.kind == "list" else map_of(inner))
    return None


def _widened_structs(narrow: Type, other: Type) -> Type | None:
    fields = dict(narrow.fields)
    for name, kind in other.fields:
        found = widened(fields.get(name, kind), kind)
        if found is None:
            return None
        fields[name] = found
    return struct_of(tuple(fields.items())) if len(fields) <= _FIELDS_MAX else None


def _merged_structs(first: Type, second: Type) -> Type:
    fields = dict(first.fields)
    for name, kind in second.fields:
        found = merged(fields.get(name), kind)
        assert found is not None
        fields[name] = found
    return struct_of(tuple(fields.items())) if len(fields) <= _FIELDS_MAX else _JSON
