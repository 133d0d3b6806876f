"""Functions that the compiled encoders and decoders call in rare or shared cases."""

import struct
from typing import Final
from uuid import UUID

from ottla.base.varint import append_unsigned, read_unsigned
from ottla.wire.errors import TooManyElements, VersionError, WireError

# The same topic ids occur again and again. The limit prevents that a client fills memory with them.
_KNOWN_UUIDS_MAX: Final = 4096
# The types of records that consist of several parts.
several: Final = (list, tuple)
_known_uuids: dict[bytes, UUID] = {}
# The most tagged fields in one section, as each costs as much as a field and may take two bytes.
# Kafka's messages have at most six.
TAGS_MAX: Final = 100
# Structs of lists of up to this length are cached.
_SHORT_MAX: Final = 16


def uuid_of(raw: bytes) -> UUID:
    """Return the UUID of 16 bytes; equal bytes usually return the same object."""
    found = _known_uuids.get(raw)
    if found is None:
        if len(_known_uuids) >= _KNOWN_UUIDS_MAX:
            _known_uuids.clear()
        found = _known_uuids[raw] = UUID(bytes=raw)
    return found


def long_varint(view: memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned varint of any length; return its value and the position after it."""
    try:
        return read_unsigned(view, position)
    except ValueError as error:
        raise WireError(f"a length at byte {position} is longer than 32 bits") from error


def skip_tags(view: memoryview, position: int) -> int:
    """Return the position after a section of tagged fields, all of which are unknown."""
    count, position = long_varint(view, position)
    if count > TAGS_MAX:
        raise too_many_tags(position)
    for _ in range(count):
        _, position = long_varint(view, position)
        size, position = long_varint(view, position)
        position += size
        if position > len(view):
            raise truncated(position - size)
    return position


def too_many(position: int) -> WireError:
    """Return the error for lists with more elements than a request may have."""
    return TooManyElements(
        f"too many elements of lists, up to byte {position}: send several requests"
    )


def too_many_tags(position: int) -> WireError:
    """Return the error for a section with more tagged fields than any message version may have."""
    return WireError(f"more than {TAGS_MAX} tagged fields in a section before byte {position}")


def too_long(position: int) -> WireError:
    """Return the error for a string longer than any valid string of Kafka."""
    return WireError(f"a string before byte {position} has more than 32,767 bytes")


def truncated(position: int) -> WireError:
    """Return the error for a length that is negative or reaches beyond the buffer."""
    return WireError(f"a length before byte {position} does not fit the bytes that follow")


def wrong_tag(tag: int, position: int) -> WireError:
    """Return the error for a tagged field whose value does not have the announced length."""
    return WireError(f"the tagged field {tag} before byte {position} does not have its own size")


class Arrays(dict[int, struct.Struct]):
    """The big-endian structs for lists of numbers of one format code, by the list's length.

    Structs for short lists, such as the replicas of a partition, are cached.
    """

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> struct.Struct:
        made = struct.Struct(f">{count}{self._code}")
        if count <= _SHORT_MAX:
            self[count] = made
        return made


def unsupported(name: str, version: int) -> VersionError:
    """Return the error for a value that the version of the message cannot represent."""
    return VersionError(f"{name} has a value that version {version} cannot carry")


__all__ = [
    "append_unsigned", "long_varint", "several", "skip_tags", "too_long", "too_many",
    "too_many_tags", "truncated", "unsupported", "uuid_of", "wrong_tag",
]  # fmt: skip
