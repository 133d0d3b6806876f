"""The interface of all formats: bytes of a key or value in, Python values out.

Also the framing of Confluent's registry: a zero byte, the schema's number in four bytes, and for
Protobuf the place of the message in its file.
"""

from typing import Any, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.types import Type

_MAGIC_SIZE = 5
# The deepest nesting of messages in a file that is accepted.
_INDEXES_MAX = 64


class BadValue(Exception):
    """Raised if the bytes of a key or value are invalid; says why."""

    def __init__(self, why: str, stage: str | None = None) -> None:
        super().__init__(why)
        # None: the stage is the decoding of this key or value.
        self.stage = stage


class ValueReader(Protocol):
    """Reads values of one schema."""

    @property
    def type(self) -> Type | None:
        """Return the type of the values; None if no schema gives it."""
        ...

    def read(self, content: bytes) -> Any:
        """Return the value of the bytes. Raises BadValue; never crashes or hangs on any bytes."""
        ...


class Schemas(Protocol):
    """Readers by the number of their schema."""

    def reader(self, schema_id: int, indexes: tuple[int, ...]) -> ValueReader:
        """Return a reader. Raises BadValue if there is no such schema, or it cannot be used.

        Raises OttlaError if that cannot be found out, because then no row is to blame.
        """
        ...


def unframed(content: bytes) -> tuple[int, bytes]:
    """Return the schema's number, and the bytes after it. Raises BadValue."""
    if len(content) < _MAGIC_SIZE or content[0] != 0:
        raise BadValue(
            f"no number of a schema stands before the value (a zero byte and four more): it begins "
            f"with {content[:_MAGIC_SIZE].hex() or 'nothing'}"
        )
    return int.from_bytes(content[1:_MAGIC_SIZE], "big"), content[_MAGIC_SIZE:]


def message_indexes(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return a Protobuf message's place in its file, and the bytes after it. Raises BadValue."""
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


def missing(package: str, extra: str, what: str) -> OttlaError:
    """Return the error for a package that is not installed."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{what} needs the package {package}, which is not installed: pip install 'ottla[{extra}]'",
    )
