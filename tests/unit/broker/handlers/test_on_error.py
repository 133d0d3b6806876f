"""Every handler can report an error of the whole request, in every version that it serves."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.log_dirs import DescribeLogDirs
from ottla.broker.requests.handler import Handler
from ottla.wire.api import ApiKey
from ottla.wire.codec import decode, encode
from ottla.wire.frames import decode_response, encode_response
from ottla.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.wire.notation import Message

from .test_all_handlers import served_handlers

CODE = ErrorCode.UNKNOWN_SERVER_ERROR
# What each kind of field holds in a request.
_VALUES = {"string": "x", "uuid": UUID(int=7), "binary": b"x", "boolean": False, "float64": 1.0}
# Where the answers of earlier versions have no place for it, in Kafka as well: clients read it
# from an answer that names nothing.
SINCE = {ApiKey.DESCRIBE_LOG_DIRS: 3}
KINDS = sorted(served_handlers(), key=lambda kind: kind.__name__)


def filled(kind: type[Message], version: int) -> Message:
    """A message with one element in each array."""
    values: dict[str, Any] = {}
    for field in kind.__fields__:
        if field.exists(version):
            values[field.name] = _value(field, version)
    return kind(**values)


def _value(field: Any, version: int) -> Any:
    element = field.element
    match field.kind:
        case "array":
            if isinstance(element, type) and issubclass(element, Message):
                return [filled(element, version)]
            return [_VALUES.get(element, 1)]
        case "struct":
            return filled(element, version)
        case "records":
            return None
    return _VALUES.get(field.kind, 1)


def codes(message: Message) -> Iterator[int]:
    """Every error code in a response."""
    for field in message.__fields__:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            yield value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Message):
                yield from codes(each)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_of_the_whole_request_reaches_the_client(kind: type[Handler]) -> None:
    """In each version that has a place for it, above all or on what the request names."""
    declared = kind.api.request
    low = max(declared.__versions__[0], kind.api.versions.min, SINCE.get(kind.api.key, 0))
    for version in range(low, kind.api.versions.max + 1):
        asked = filled(declared, version)
        body = decode(declared, version, memoryview(encode(asked, version)))
        answer = kind.on_error(body, CODE, "why", version)
        frame = b"".join(map(bytes, encode_response(answer, kind.api.key, version, 7)))
        told = list(codes(decode_response(kind.api.key, version, memoryview(frame)[4:])[1]))
        assert CODE in told, f"version {version} does not report the error: {told}"


@pytest.mark.parametrize("version", [1, 2])
def test_log_directories_are_refused_by_naming_none_where_no_error_fits(version: int) -> None:
    """As Kafka 4.3 does before version 3; the admin clients of both know it for a refusal."""
    answer = DescribeLogDirs.on_error(DescribeLogDirsRequest(), CODE, "why", version)
    frame = b"".join(map(bytes, encode_response(answer, ApiKey.DESCRIBE_LOG_DIRS, version, 7)))
    read = decode_response(ApiKey.DESCRIBE_LOG_DIRS, version, memoryview(frame)[4:])[1]
    assert read == DescribeLogDirsResponse(results=[])
