"""Frames: a size of 4 bytes, a header and a body.

The header of a request has version 2, with tagged fields, if the body is flexible, and version 1
otherwise. The header of a response likewise has version 1 or 0. An exception is ApiVersions: its
response always has header version 0, so that a client can read it before it knows which versions
the broker supports (KIP-511).
"""

import struct
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from ottla.wire.api import ApiKey
from ottla.wire.codec import decode, encode_after, encode_in_steps
from ottla.wire.errors import TooManyBytes, VersionError, WireError
from ottla.wire.field import HIGHEST_VERSION
from ottla.wire.notation import FLEXIBLE_FROM, RESPONSES, Message
from ottla.wire.parts import Buffer, FileRegion, Part, Records
from ottla.wire.primitive import skip_tags

# The position of the correlation id. In a request (without its size) it follows API key and
# version, and client id and body come after it. In a response it follows the size.
CORRELATION_POSITION: Final = 4
AFTER_CORRELATION_ID: Final = 8
# The size prefix of each request and response.
SIZE_BYTES: Final = 4

_REQUEST: Final = struct.Struct(">hhih").unpack_from
_REQUEST_HEAD: Final = struct.Struct(">ihhih").pack
_RESPONSE_HEAD: Final = struct.Struct(">ii").pack
_FLEXIBLE_RESPONSE_HEAD: Final = struct.Struct(">iix").pack
_INT32: Final = struct.Struct(">i")
_NEVER: Final = HIGHEST_VERSION + 1
_new = tuple.__new__


class RequestHeader(NamedTuple):
    """The header of a request. `api_key` may be a key without a declared API."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


# Hot: once per request, 0.7 µs.
def decode_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """Return the header that starts at `position`, and the position of the body.

    For an unknown API the header is read as version 1, since its fields are in all versions. Raises
    WireError.
    """
    view = memoryview(buffer)
    try:
        api_key, version, correlation_id, size = _REQUEST(view, position)
        position += 10
        client_id = None
        if size != -1:
            end = position + size
            if not position <= end <= len(view):
                raise WireError(f"a client id of {size} bytes does not fit its request")
            client_id = view[position:end].tobytes().decode()
            position = end
        if version >= FLEXIBLE_FROM.get(api_key, _NEVER):
            if view[position]:
                position = skip_tags(view, position)
            else:
                position += 1
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"a request header is cut off or no text: {error}") from error
    return _new(RequestHeader, (api_key, version, correlation_id, client_id)), position


def _sized(parts: list[Part], head: bytearray) -> list[Part]:
    """Write the size of all parts, without the size prefix itself, into `head`."""
    size = sum(map(len, parts))
    _INT32.pack_into(head, 0, size - 4)
    return parts


def encode_request(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> list[Part]:
    """Return a whole request, including its size. Raises VersionError."""
    api_key = type(message).__api_key__
    client = b"" if client_id is None else client_id.encode()
    client_size = -1 if client_id is None else len(client)
    head = bytearray(_REQUEST_HEAD(0, api_key, version, correlation_id, client_size))
    head += client
    if version >= FLEXIBLE_FROM.get(api_key, _NEVER):
        head.append(0)
    parts: list[Part] = []
    encode_after(head, parts, message, version)
    return _sized(parts, head)


def _flexible_response(api_key: int, version: int) -> bool:
    return version >= FLEXIBLE_FROM.get(api_key, _NEVER) and api_key != ApiKey.API_VERSIONS


# Hot: once per response; figures in codec.py.
def encode_response(
    message: Message, api_key: int, version: int, correlation_id: int
) -> list[Part]:
    """Return a whole response, including its size. Raises VersionError."""
    pack = _FLEXIBLE_RESPONSE_HEAD if _flexible_response(api_key, version) else _RESPONSE_HEAD
    head = bytearray(pack(0, correlation_id))
    parts: list[Part] = []
    encode_after(head, parts, message, version)
    return _sized(parts, head)


def encode_response_in_steps(
    message: Message, api_key: int, version: int, correlation_id: int, bytes_max: int
) -> Generator[None, None, list[Part]]:
    """Encode like `encode_response`, but yield after each STEP elements of lists.

    Raises TooManyBytes if the response, without records, becomes larger than `bytes_max`.
    """
    pack = _FLEXIBLE_RESPONSE_HEAD if _flexible_response(api_key, version) else _RESPONSE_HEAD
    head = bytearray(pack(0, correlation_id))
    parts: list[Part] = []
    # All bytes of a response before its first records are in `head`.
    for _ in encode_in_steps(head, parts, message, version):
        if len(head) > bytes_max:
            raise TooManyBytes(f"the response is larger than {bytes_max} bytes")
        yield
    return _sized(parts, head)


def decode_response(
    api_key: int, version: int, buffer: Buffer, position: int = 0
) -> tuple[int, Any]:
    """Return (correlation id, message) of a response to a request with that key and version.

    The message is of the API's response class. Raises WireError or VersionError.
    """
    response = RESPONSES.get(api_key)
    if response is None:
        raise VersionError(f"there is no API with key {api_key}")
    view = memoryview(buffer)
    try:
        (correlation_id,) = _INT32.unpack_from(view, position)
        position += 4
        if _flexible_response(api_key, version):
            position = skip_tags(view, position)
    except (struct.error, IndexError) as error:
        raise WireError(f"a response header is cut off: {error}") from error
    return correlation_id, decode(response, version, view, position)


__all__ = [
    "AFTER_CORRELATION_ID", "CORRELATION_POSITION", "SIZE_BYTES", "Buffer", "FileRegion", "Part",
    "Records", "RequestHeader", "decode_request_header", "decode_response", "encode_request",
    "encode_response", "encode_response_in_steps",
]  # fmt: skip
