"""What the compiled encoders and decoders call for the rare or shared cases."""

import struct
from typing import Final
from uuid import UUID

from ottla.base.varint import append_unsigned, read_unsigned
from ottla.wire.errors import TooManyElements, VersionError, WireError

# Topic ids come again and again; the bound keeps a hostile peer from filling memory.
_KNOWN_UUIDS_MAX: Final = 4096
# Records given piece by piece.
several: Final = (list, tuple)
_known_uuids: dict[bytes, UUID] = {}
# Of one section: each costs as much as a field, and takes two bytes. Kafka has at most six.
TAGS_MAX: Final = 100
# The longest list whose struct is kept.
_SHORT_MAX: Final = 16


def uuid_of(raw: bytes) -> UUID:
    """Return the UUID of 16 bytes; equal bytes usually give the same object."""
    found = _known_uuids.get(raw)
    if found is None:
        if len(_known_uuids) >= _KNOWN_UUIDS_MAX:
            _known_uuids.clear()
        found = _known_uuids[raw] = UUID(bytes=raw)
    return found


def long_varint(view: memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it) of an unsigned varint that may take several bytes."""
    try:
        return read_unsigned(view, position)
    except ValueError as error:
        raise WireError(f"a length at byte {position} is longer than 32 bits") from error


def skip_tags(view: memoryview, position: int) -> int:
    """Return the position after a section of tagged fields of which none is known."""
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
    """The error for lists with more elements than a request may have."""
    return TooManyElements(
        f"too many elements of lists, up to byte {position}: send several requests"
    )


def too_many_tags(position: int) -> WireError:
    """The error for a section of more tagged fields than any version of a message will have."""
    return WireError(f"more than {TAGS_MAX} tagged fields in a section before byte {position}")


def too_long(position: int) -> WireError:
    """The error for a string that no name of Kafka's can be."""
    return WireError(f"a string before byte {position} has more than 32,767 bytes")


def truncated(position: int) -> WireError:
    """The error for a length that is negative or reaches beyond the buffer."""
    return WireError(f"a length before byte {position} does not fit the bytes that follow")


def wrong_tag(tag: int, position: int) -> WireError:
    """The error for a tagged field whose value is not as long as it says."""
    return WireError(f"the tagged field {tag} before byte {position} does not have its own size")


class Arrays(dict[int, struct.Struct]):
    """The structs of so many numbers of one code, big endian.

    Those of short lists, as of a partition's replicas, are made once.
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
    """The error for a value that the chosen version cannot carry."""
    return VersionError(f"{name} has a value that version {version} cannot carry")


__all__ = [
    "append_unsigned", "long_varint", "several", "skip_tags", "too_long", "too_many",
    "too_many_tags", "truncated", "unsupported", "uuid_of", "wrong_tag",
]  # fmt: skip
