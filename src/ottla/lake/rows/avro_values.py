"""Reads Avro values, with one function for each type in the schema.

fastavro's compiled reader is not used: it reads a negative branch of a union as the last branch,
and a deep value of a recursive schema crashes its process. A record that crashes its worker blocks
a load for ever. Here every length and index is checked before it is used.

Times stay numbers and decimals stay bytes, which Arrow converts, even if they do not fit into
Python's dates. A union of null and one type becomes that type, nullable. A union of several number
types becomes the widest of them. Any other union becomes a struct with a field for each branch
(`member0`, `member1`, as in Spark), one of which is not null.
"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ottla.lake.model.types import Type, decimal_of, list_of, map_of, plain, struct_of
from ottla.lake.rows.debezium import CONNECT_TYPES
from ottla.lake.rows.value_reader import BadValue, SchemaUnusable


def _base(kind: str) -> str:
    """Return the Avro primitive that Kafka Connect writes for a column's type."""
    return "int" if kind in {"date", "time(ms)"} else "long"


_LOGICAL = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time(ms)",
    ("long", "time-micros"): "time(us)",
    ("long", "timestamp-millis"): "timestamp(ms)",
    ("long", "timestamp-micros"): "timestamp(us)",
    ("long", "local-timestamp-millis"): "datetime(ms)",
    ("long", "local-timestamp-micros"): "datetime(us)",
    # Kafka Connect's converter adds the name of its logical type to Avro's type.
    **{(_base(kind), name): kind for name, kind in CONNECT_TYPES.items()},
}
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_NUMBERS = ("int32", "int64", "float32", "float64")
_DEPTH_MAX = 64
# The most types in a schema. A named type counts each time that it is used.
_NODES_MAX = 5_000


class _Cursor:
    """A position in bytes that are being read."""

    __slots__ = ("content", "position")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0


Read = Callable[[_Cursor], Any]


@dataclass(frozen=True, slots=True)
class _AvroType:
    """The reader and the type of a schema's values, and whether a value takes any bytes."""

    read: Read
    type: Type
    takes_bytes: bool = True
    size: int = 1  # The number of types in it.


class AvroReader:
    """Reads values that were written with the schema in `text`.

    `references` are the texts of schemas whose names `text` uses, in the order of their use. Raises
    SchemaUnusable.
    """

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        walk = _SchemaWalk()
        try:
            for reference in references:
                walk.node(_parsed(reference), "", 0)
            node = walk.node(_parsed(text), "", 0)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SchemaUnusable(f"the schema of Avro can't be used: {error!r}") from error
        self.type: Type | None = node.type
        self._read = node.read

    def read(self, content: bytes) -> Any:
        """Return the decoded value, as `value_reader.ValueReader` says."""
        cursor = _Cursor(content)
        try:
            found = self._read(cursor)
        except (IndexError, struct.error):
            raise BadValue("no Avro of this schema: it ends too early") from None
        except (ValueError, RecursionError) as error:
            raise BadValue(f"no Avro of this schema: {error}") from None
        rest = len(content) - cursor.position
        if rest:
            raise BadValue(f"no Avro of this schema: {rest} bytes stand behind the value")
        return found


def _parsed(text: str) -> Any:
    """Parse a schema's JSON. A word without quotes is the name of a primitive type."""
    try:
        return json.loads(text)
    except RecursionError:
        raise SchemaUnusable("the schema of Avro nests too deep") from None
    except ValueError:
        if text.strip() in _PRIMITIVES:
            return text.strip()
        raise SchemaUnusable("the schema of Avro is no JSON") from None


# -- values


# Hot: called for each number, length and branch.
def _long(cursor: _Cursor) -> int:
    content, position = cursor.content, cursor.position
    byte = content[position]
    position += 1
    number = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift > 63:
            raise ValueError("a number takes more than ten bytes")
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    cursor.position = position
    if number >> 64:
        raise ValueError("a number is larger than 64 bits")
    return (number >> 1) ^ -(number & 1)


def _int(cursor: _Cursor) -> int:
    number = _long(cursor)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise ValueError(f"{number} is no int")
    return number


def _bytes(cursor: _Cursor) -> bytes:
    return _taken(cursor, _long(cursor))


def _taken(cursor: _Cursor, size: int) -> bytes:
    start = cursor.position
    end = start + size
    if size < 0:
        raise ValueError(f"a length is {size}")
    if end > len(cursor.content):
        raise IndexError
    cursor.position = end
    return cursor.content[start:end]


def _string(cursor: _Cursor) -> str:
    return _bytes(cursor).decode()


def _boolean(cursor: _Cursor) -> bool:
    byte = cursor.content[cursor.position]
    if byte > 1:
        raise ValueError(f"a boolean is {byte}")
    cursor.position += 1
    return byte == 1


def _number(form: str) -> Read:
    parse = struct.Struct(form)

    def read(cursor: _Cursor) -> Any:
        (number,) = parse.unpack_from(cursor.content, cursor.position)
        cursor.position += parse.size
        return number

    return read


def _null(_cursor: _Cursor) -> None:
    return None


_NULL = _AvroType(_null, plain("string"), takes_bytes=False)
# Primitive types: how their values are read, and the type of their columns.
_PRIMITIVES: Mapping[str, _AvroType] = {
    "null": _NULL,
    "boolean": _AvroType(_boolean, plain("boolean")),
    "int": _AvroType(_int, plain("int32")),
    "long": _AvroType(_long, plain("int64")),
    "float": _AvroType(_number("<f"), plain("float32")),
    "double": _AvroType(_number("<d"), plain("float64")),
    "bytes": _AvroType(_bytes, plain("binary")),
    "string": _AvroType(_string, plain("string")),
}


def _blocks(cursor: _Cursor) -> Iterator[int]:
    """Yield the number of items in each block of an array or map.

    As an item has at least one byte, a number above the remaining bytes is an error.
    """
    while count := _long(cursor):
        if count < 0:
            count = -count
            _long(cursor)  # Skip the block's size in bytes.
        if count > len(cursor.content) - cursor.position:
            raise IndexError
        yield count


def _array(item: Read) -> Read:
    def read(cursor: _Cursor) -> list[Any]:
        return [item(cursor) for count in _blocks(cursor) for _ in range(count)]

    return read


def _map(value: Read) -> Read:
    def read(cursor: _Cursor) -> dict[str, Any]:
        return {_string(cursor): value(cursor) for count in _blocks(cursor) for _ in range(count)}

    return read


def _record(fields: Sequence[tuple[str, Read]]) -> Read:
    def read(cursor: _Cursor) -> dict[str, Any]:
        return {name: field(cursor) for name, field in fields}

    return read


def _choice(branches: Sequence[Read]) -> Read:
    count = len(branches)

    def read(cursor: _Cursor) -> Any:
        branch = _long(cursor)
        if not 0 <= branch < count:
            raise ValueError(f"branch {branch} of a union of {count}")
        return branches[branch](cursor)

    return read


def _enum(symbols: Sequence[str]) -> Read:
    def read(cursor: _Cursor) -> str:
        number = _long(cursor)
        if not 0 <= number < len(symbols):
            raise ValueError(f"symbol {number} of an enum of {len(symbols)}")
        return symbols[number]

    return read


def _fixed(size: int) -> Read:
    return lambda cursor: _taken(cursor, size)


def _member(label: str, branch: Read) -> Read:
    return lambda cursor: {label: branch(cursor)}


# -- schemas


class _SchemaWalk:
    """Builds readers for schemas, and remembers named types, which later schemas may use."""

    def __init__(self) -> None:
        # By full name. A type is None while its own fields are being walked.
        self._named: dict[str, _AvroType | None] = {}

    def node(self, schema: Any, namespace: str, depth: int) -> _AvroType:
        """Return the reader of values of `schema`. Raises SchemaUnusable."""
        if depth > _DEPTH_MAX:
            raise SchemaUnusable(f"the schema nests deeper than {_DEPTH_MAX} levels")
        if isinstance(schema, str):
            return _PRIMITIVES.get(schema) or self._used(schema, namespace)
        if isinstance(schema, list):
            return self._union([self.node(one, namespace, depth + 1) for one in schema])
        kind = schema["type"]
        if kind in ("array", "map"):
            return self._container(kind, schema, namespace, depth)
        if isinstance(kind, str) and kind in _NAMED:
            return self._defined(kind, schema, namespace, depth)
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return _primitive(kind, schema)
        return self.node(kind, namespace, depth + 1)

    def _container(self, kind: str, schema: Mapping[str, Any], space: str, depth: int) -> _AvroType:
        if kind == "map":
            inner = self.node(schema["values"], space, depth + 1)
            return _AvroType(_map(inner.read), map_of(inner.type), size=inner.size + 1)
        inner = self.node(schema["items"], space, depth + 1)
        if not inner.takes_bytes:
            # With items of no bytes, a record of few bytes could claim 2^60 items.
            raise SchemaUnusable("the schema has an array whose items take no bytes")
        return _AvroType(_array(inner.read), list_of(inner.type), size=inner.size + 1)

    def _used(self, name: str, namespace: str) -> _AvroType:
        full = f"{namespace}.{name}" if namespace and "." not in name else name
        full = full if full in self._named else name
        if full not in self._named:
            raise SchemaUnusable(f"the schema of Avro names {name}, which it does not define")
        found = self._named[full]
        if found is None:
            raise SchemaUnusable(
                f"the schema is recursive: {full} holds itself, and no column can. Take such "
                "values as bytes"
            )
        return found

    def _defined(
        self, kind: str, schema: Mapping[str, Any], namespace: str, depth: int
    ) -> _AvroType:
        name = schema["name"]
        space = schema.get("namespace") or namespace
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = None
        if kind == "enum":
            symbols = schema["symbols"]
            if not all(isinstance(symbol, str) for symbol in symbols):
                raise TypeError("symbols of an enum are strings")
            node = _AvroType(_enum(symbols), plain("string"))
        elif kind == "fixed":
            size = int(schema["size"])
            node = _AvroType(
                _fixed(size), _decimal(schema) or plain("binary"), takes_bytes=size > 0
            )
        else:
            node = self._record_node(schema["fields"], full.rpartition(".")[0], depth)
        self._named[full] = node
        return node

    def _record_node(self, declared: Sequence[Any], space: str, depth: int) -> _AvroType:
        fields = [(one["name"], self.node(one["type"], space, depth + 1)) for one in declared]
        size = 1 + sum(each.size for _, each in fields)
        if size > _NODES_MAX:
            raise SchemaUnusable(f"the schema has more than {_NODES_MAX} fields")
        return _AvroType(
            _record([(name, each.read) for name, each in fields]),
            struct_of(tuple((name, each.type) for name, each in fields if each is not _NULL)),
            takes_bytes=any(each.takes_bytes for _, each in fields),
            size=size,
        )

    def _union(self, branches: Sequence[_AvroType]) -> _AvroType:
        there = [branch for branch in branches if branch is not _NULL]
        reads = [branch.read for branch in branches]
        size = sum(branch.size for branch in branches)
        if not there:
            return _AvroType(_choice(reads), plain("string"))
        kinds = [branch.type.kind for branch in there]
        if len(there) == 1:
            return _AvroType(_choice(reads), there[0].type, size=size)
        if all(kind in _NUMBERS for kind in kinds):
            widest = plain(max(kinds, key=_NUMBERS.index))
            return _AvroType(_choice(reads), widest, size=size)
        fields: list[tuple[str, Type]] = []
        for place, branch in enumerate(branches):
            if branch is not _NULL:
                label = f"member{len(fields)}"
                fields.append((label, branch.type))
                reads[place] = _member(label, branch.read)
        return _AvroType(_choice(reads), struct_of(tuple(fields)), size=size)


def _primitive(kind: str, schema: Mapping[str, Any]) -> _AvroType:
    """Return a primitive type, with the column type of its logical type, if it has one."""
    found = _PRIMITIVES[kind]
    if kind == "bytes":
        return replace(found, type=_decimal(schema) or found.type)
    for word in (schema.get("logicalType"), schema.get("connect.name")):
        if isinstance(word, str) and (kind, word) in _LOGICAL:
            return replace(found, type=plain(_LOGICAL[kind, word]))
    return found


def _decimal(schema: Mapping[str, Any]) -> Type | None:
    """Return a decimal type; None if the schema is no decimal, or has a scale that Spark lacks.

    Kafka Connect writes a precision of 64 if it does not know the precision.
    """
    if schema.get("logicalType") != "decimal":
        return None
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or precision < 1:
        return None
    return decimal_of(min(precision, 38), scale) if 0 <= scale <= min(precision, 38) else None
