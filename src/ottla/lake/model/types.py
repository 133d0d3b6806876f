"""Types of columns and their names: `int64`, `decimal(10,2)`, `list<string>`, `struct<a: int64>`.

The names are used in declarations, manifests and messages. Each stands for exactly one Arrow type.

    boolean int8 int16 int32 int64 float32 float64 string binary date
    timestamp timestamp(ms) timestamp(us)    an instant in UTC, by default in microseconds
    datetime datetime(ms) datetime(us)       a date and time without a zone
    time(ms) time(us)                        a time of day
    decimal(PRECISION,SCALE)                 precision up to 38, as in Spark
    json                                     any value, as the text of its JSON
    list<T> map<T> struct<NAME: T, …>        keys of a map are strings
"""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ottla.base.errors import OttlaError, WrongWords

_PLAIN: dict[str, Any] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "json": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp(ms)": pa.timestamp("ms", tz="UTC"),
    "timestamp(us)": pa.timestamp("us", tz="UTC"),
    "datetime(ms)": pa.timestamp("ms"),
    "datetime(us)": pa.timestamp("us"),
    "time(ms)": pa.time32("ms"),
    "time(us)": pa.time64("us"),
}
# Names that other systems use for the same types.
_SYNONYMS = {
    "bool": "boolean",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "integer": "int32",
    "long": "int64",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "str": "string",
    "text": "string",
    "bytes": "binary",
    "timestamp": "timestamp(us)",
    "datetime": "datetime(us)",
    "time": "time(us)",
}
_UNITS = ("(ms)", "(us)")
_PRECISION_MAX = 38
# The deepest nesting of a declared type; each level recurses here and in Arrow.
_DEPTH_MAX = 32
_TOKEN = re.compile(r"\s*([A-Za-z_][\w$.-]*|`(?:[^`]|``)*`|\d+|[<>(),:])")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `kind` is a plain word, `decimal`, `list`, `map` or `struct`.

    `fields` are the fields of a struct. A list or a map has one field without a name.
    """

    kind: str
    fields: tuple[tuple[str, "Type"], ...] = ()
    precision: int = 0
    scale: int = 0

    @property
    def arrow(self) -> Any:
        """Return the Arrow type of a column of this type."""
        match self.kind:
            case "decimal":
                return pa.decimal128(self.precision, self.scale)
            case "list":
                return pa.list_(pa.field("element", self.element.arrow))
            case "map":
                return pa.map_(pa.string(), self.element.arrow)
            case "struct":
                return pa.struct([pa.field(name, each.arrow) for name, each in self.fields])
        return _PLAIN[self.kind]

    @property
    def element(self) -> "Type":
        return self.fields[0][1]

    def has(self, kind: str) -> bool:
        """Return whether the type is of this kind, or contains a type of this kind."""
        return self.kind == kind or any(each.has(kind) for _, each in self.fields)

    def __str__(self) -> str:
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "list" | "map":
                return f"{self.kind}<{self.element}>"
            case "struct":
                fields = (f"{_quoted(name)}: {each}" for name, each in self.fields)
                return f"struct<{', '.join(fields)}>"
        return self.kind


def plain(kind: str) -> Type:
    """Return the plain type of this name."""
    assert kind in _PLAIN
    return Type(kind)


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", (("", element),))


def map_of(element: Type) -> Type:
    """Return the type of maps from strings to `element`."""
    return Type("map", (("", element),))


def struct_of(fields: tuple[tuple[str, Type], ...]) -> Type:
    """Return the type of objects with these fields."""
    return Type("struct", fields)


def type_at(kind: Type, path: tuple[str, ...]) -> Type | None:
    """Return the type of the field at `path`; None if there is none.

    In a path, `[]` is the element of a list, and `{}` the value of a map.
    """
    found: Type | None = kind
    for name in path:
        if found is None:
            break
        inner = found.element if name in {"[]", "{}"} and found.fields else None
        found = inner or dict(found.fields).get(name)
    return found


def other_unit(one: Type, other: Type, *, scales: bool) -> tuple[str, str] | None:
    """Return the first pair of types, at the same place in both, that differ only in their unit.

    The unit is that of times. With `scales`, decimals that differ in scale are returned too.
    """
    if one.kind != other.kind and one.kind[-4:] in _UNITS and other.kind[-4:] in _UNITS:
        return (one.kind, other.kind) if one.kind[:-4] == other.kind[:-4] else None
    if scales and one.kind == other.kind == "decimal" and one.scale != other.scale:
        return str(one), str(other)
    fields = dict(other.fields)
    found = (
        other_unit(each, fields[name], scales=scales) for name, each in one.fields if name in fields
    )
    return next(filter(None, found), None)


def decimal_of(precision: int, scale: int) -> Type:
    """Return a decimal type. Raises OttlaError for a precision or scale that Spark lacks."""
    if not (0 < precision <= _PRECISION_MAX and 0 <= scale <= precision):
        raise _wrong(
            f"decimal({precision},{scale})",
            f"a precision is 1 to {_PRECISION_MAX}, and a scale not larger; declare it as string",
        )
    return Type("decimal", precision=precision, scale=scale)


def parse_type(words: str) -> Type:
    """Parse the name of a type. Raises OttlaError INVALID_REQUEST."""
    reader = _Words(words)
    found = reader.type(0)
    if reader.token:
        raise _wrong(words, f"{reader.token!r} stands behind the type")
    return found


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


class _Words:
    """Parses a type token by token. `token` is the next token, empty at the end."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._position = 0
        self.token = ""
        self._advance()

    def _advance(self) -> str:
        before = self.token
        rest = self._words[self._position :]
        match = _TOKEN.match(rest)
        if match is None and rest.strip():
            raise _wrong(self._words, f"{rest.strip()[:20]!r} is no part of a type")
        self.token = match[1] if match else ""
        self._position += match.end() if match else len(rest)
        return before

    def _expect(self, wanted: str) -> None:
        if self.token != wanted:
            raise _wrong(self._words, f"{wanted!r} was expected before {self.token!r}")
        self._advance()

    def type(self, depth: int) -> Type:
        if depth > _DEPTH_MAX:
            raise _wrong(self._words[:80], f"it nests deeper than {_DEPTH_MAX} levels; use json")
        word = self._advance().lower()
        match word:
            case "decimal" | "numeric":
                return self._decimal()
            case "list" | "array" | "map":
                self._expect("<")
                element = self.type(depth + 1)
                if word == "map" and self.token == ",":
                    if element.kind != "string":
                        raise _wrong(self._words, "keys of a map are strings")
                    self._advance()
                    element = self.type(depth + 1)
                self._expect(">")
                return map_of(element) if word == "map" else list_of(element)
            case "struct":
                return self._struct(depth)
        word = _SYNONYMS.get(word, word) if self.token != "(" else f"{word}({self._unit()})"
        if word not in _PLAIN:
            raise _wrong(self._words, f"{word!r} is no type: {', '.join(sorted(_PLAIN))}, …")
        return Type(word)

    def _unit(self) -> str:
        self._expect("(")
        unit = self._advance()
        self._expect(")")
        return unit

    def _decimal(self) -> Type:
        self._expect("(")
        numbers = [self._advance()]
        if self.token == ",":
            self._advance()
            numbers.append(self._advance())
        self._expect(")")
        if not all(number.isdigit() for number in numbers):
            raise _wrong(self._words, "a decimal has numbers: decimal(10,2)")
        return decimal_of(int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0)

    def _struct(self, depth: int) -> Type:
        self._expect("<")
        fields: dict[str, Type] = {}
        while True:
            name = _unquoted(self._advance())
            self._expect(":")
            if name in fields:
                raise _wrong(self._words, f"the field {name} stands there twice")
            fields[name] = self.type(depth + 1)
            if self.token != ",":
                break
            self._advance()
        self._expect(">")
        return struct_of(tuple(fields.items()))


def _wrong(words: str, why: str) -> OttlaError:
    return WrongWords(f"the type {words!r} can't be read: {why}")
