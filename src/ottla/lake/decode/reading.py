"""What all formats have in common: bytes of a key or value in, Python values out.

Also the framing of Confluent's registry: a zero byte, the schema's number in four bytes, and for
Protobuf the place of the message in its file.
"""

from typing import Any, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.decode.types import Type

_MAGIC_SIZE = 5
# Messages nest in a file less deep than that.
_INDEXES_MAX = 64


class BadValue(Exception):
    """The bytes of a key or value are not what they should be; says why."""

    def __init__(self, why: str, stage: str | None = None) -> None:
        super().__init__(why)
        # None: the stage of decoding this key or value.
        self.stage = stage


class ValueReader(Protocol):
    """Reads values of one schema."""

    @property
    def type(self) -> Type | None:
        """The type of the values; None where no schema says it."""
        ...

    def read(self, content: bytes) -> Any:
        """Raises BadValue; never crashes or hangs, whatever the bytes are."""
        ...


class Schemas(Protocol):
    """Readers by the number of their schema."""

    def reader(self, schema_id: int, indexes: tuple[int, ...]) -> ValueReader:
        """Raises BadValue where there is no such schema, or it can't be used.

        OttlaError where that can't be found out: no row is to blame for that.
        """
        ...


def unframed(content: bytes) -> tuple[int, bytes]:
    """The schema's number, and what stands behind it. Raises BadValue."""
    if len(content) < _MAGIC_SIZE or content[0] != 0:
        raise BadValue(
            f"no number of a schema stands before the value (a zero byte and four more): it begins "
            f"with {content[:_MAGIC_SIZE].hex() or 'nothing'}"
        )
    return int.from_bytes(content[1:_MAGIC_SIZE], "big"), content[_MAGIC_SIZE:]


def message_indexes(content: bytes) -> tuple[tuple[int, ...], bytes]:
    """Protobuf's place of a message in its file, and what stands behind it. Raises BadValue."""
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
    """The error of a package that is not installed."""
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"{what} needs the package {package}, which is not installed: pip install 'ottla[{extra}]'",
    )
