"""The interface of readers, which turn bytes into Python values, and readers of simple formats.

JSON is read by orjson, or by the standard library if numbers must keep all their digits. A CSV
value is one line, whose fields are identified by their order.
"""

import csv
import io
import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

import orjson

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Csv
from ottla.lake.model.types import Type

# The framing of Confluent's registry: a zero byte, and the schema id in four bytes.
_FRAMING_SIZE = 5
# The deepest accepted nesting of message types in a Protobuf file.
_INDEXES_MAX = 64
# Python's default limit of 131,072 is too small for some fields.
_FIELD_SIZE_MAX = 1 << 30


class BadValue(Exception):
    """Raised if the bytes of a key or value are invalid. The message says why."""

    def __init__(self, why: str, stage: str | None = None) -> None:
        super().__init__(why)
        # If None, the stage is the decoding of this key or value.
        self.stage = stage


class SchemaUnusable(BadValue):
    """Raised for a schema that cannot be used to read values. The message says why."""

    def __init__(self, why: str) -> None:
        super().__init__(why, "schema")


def shown(value: Any) -> str:
    """Return a value for a message, cut to a readable length."""
    try:
        text = str(value) if isinstance(value, Decimal) else repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"  # An integer with more digits than Python prints.
    return text if len(text) <= 60 else f"{text[:57]}…"


def missing(package: str, extra: str, what: str) -> OttlaError:
    """Return the error for a package that is not installed."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{what} needs the package {package}, which is not installed: pip install 'ottla[{extra}]'",
    )


class ValueReader(Protocol):
    """Reads values of one schema."""

    @property
    def type(self) -> Type | None:
        """Return the type of the values; None if they have no schema."""
        ...

    def read(self, content: bytes) -> Any:
        """Decode bytes. Raises BadValue for invalid bytes; it never crashes or hangs."""
        ...


class BytesReader:
    """Returns bytes unchanged."""

    type: Type | None = Type("binary")

    def read(self, content: bytes) -> Any:
        return content


class TextReader:
    """Reads UTF-8."""

    type: Type | None = Type("string")

    def read(self, content: bytes) -> Any:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise BadValue(f"no UTF-8: {error}") from None


class CsvReader:
    """Reads one CSV line, and returns its fields as texts by name."""

    type: Type | None = None

    def __init__(self, names: Sequence[str], how: Csv) -> None:
        self._names = names
        self._how = how
        csv.field_size_limit(_FIELD_SIZE_MAX)

    def read(self, content: bytes) -> Any:
        try:
            lines = csv.reader(
                io.StringIO(content.decode(), newline=""),
                delimiter=self._how.delimiter,
                quotechar=self._how.quote,
                strict=True,
            )
            found = [line for line in lines if line]
        except (UnicodeDecodeError, csv.Error) as error:
            raise BadValue(f"no CSV: {error}") from None
        if len(found) != 1:
            raise BadValue(f"it holds {len(found)} lines of CSV, not one")
        (fields,) = found
        if len(fields) != len(self._names):
            raise BadValue(f"it has {len(fields)} fields, not {len(self._names)}")
        null = self._how.null
        return {
            name: None if text == null else text
            for name, text in zip(self._names, fields, strict=True)
        }


class JsonReader:
    """Reads one JSON value. With `exact`, numbers with a point become decimals, not floats."""

    type: Type | None = None

    def __init__(self, *, exact: bool = False) -> None:
        self._loads = _exact if exact else orjson.loads

    def read(self, content: bytes) -> Any:
        if content[:1] == b"\x00":
            # Skip a registry's framing. No JSON begins with a zero byte.
            content = content[_FRAMING_SIZE:]
        try:
            return self._loads(content)
        except (ValueError, RecursionError, InvalidOperation) as error:
            raise BadValue(f"no JSON: {error or type(error).__name__}") from None


def _exact(content: bytes) -> Any:
    # The standard library keeps all digits, but accepts more than orjson: NaN, any depth, half of a
    # surrogate pair. So orjson decides which values are valid. Of duplicate names, both use the
    # last value.
    orjson.loads(content)
    return json.loads(content.decode(), parse_float=Decimal)


# -- the framing of Confluent's registry


def unframed(content: bytes) -> tuple[int, bytes]:
    """Return the schema id, and the bytes after the framing. Raises BadValue."""
    if len(content) < _FRAMING_SIZE or content[0] != 0:
        raise BadValue(
            f"no number of a schema stands before the value (a zero byte and four more): it begins "
            f"with {content[:_FRAMING_SIZE].hex() or 'nothing'}"
        )
    return int.from_bytes(content[1:_FRAMING_SIZE], "big"), content[_FRAMING_SIZE:]


def message_indexes(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the indexes of a Protobuf message in its file, and the bytes after them.

    Raises BadValue.
    """
    count, position = _zigzag(content, 0)
    if count == 0:
        return (0,), content[position:]
    if not 0 < count <= _INDEXES_MAX:
        raise BadValue(f"it names a message by {count} indexes")
    found = []
    for _ in range(count):
        index, position = _zigzag(content, position)
        found.append(index)
    return tuple(found), content[position:]


def _zigzag(content: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 35:
        if position >= len(content):
            raise BadValue("it ends within the indexes of its message")
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
    raise BadValue("the indexes of its message are no numbers")
