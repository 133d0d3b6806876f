"""Parses records in JSON, one per line, in the format of `ottla consume --json`. Pure.

All bytes are preserved: what is not UTF-8 is base64, in `key_base64`, `value_base64` and
`{"base64": …}` for a header's value. Null stays null.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError

# Other fields that `ottla consume` writes describe where the record came from; they are ignored.
_FIELDS = ("key", "key_base64", "value", "value_base64", "headers", "timestamp", "partition")
_OF_THE_SOURCE = ("topic", "offset", "time")


class JsonRecord(NamedTuple):
    """A record to send. If timestamp or partition is None, the producer chooses it."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int | None
    partition: int | None


class _Wrong(ValueError):
    """An error in a line."""


def record_of(line: bytes, number: int) -> JsonRecord:
    """Parse the record in a line. Raises OttlaError INVALID_RECORD, which has the line's number."""
    try:
        return _record(json.loads(line))
    except (_Wrong, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        why = error if isinstance(error, _Wrong) else f"it is no JSON: {error}"
        raise OttlaError(
            ErrorCode.INVALID_RECORD,
            f"line {number} is no record as `ottla consume --json` shows it: {why}; it and what "
            "follows was not sent",
        ) from None


def _record(content: Any) -> JsonRecord:
    if not isinstance(content, dict):
        raise _Wrong("it is no object")
    for name in content:
        if name not in (*_FIELDS, *_OF_THE_SOURCE):
            raise _Wrong(f"there is no field {name!r}; the fields are {', '.join(_FIELDS)}")
    if "value" not in content and "value_base64" not in content:
        raise _Wrong('it has no value (write "value": null for a tombstone)')
    timestamp_ms = _whole(content, "timestamp")
    return JsonRecord(
        _bytes_of(content, "key"),
        _bytes_of(content, "value"),
        _headers(content.get("headers") or []),
        # In Kafka's first record formats, -1 means that a record has no timestamp.
        None if timestamp_ms == -1 else timestamp_ms,
        _whole(content, "partition"),
    )


def _bytes_of(content: Mapping[str, Any], name: str) -> bytes | None:
    encoded = content.get(f"{name}_base64")
    if encoded is None:
        return _text(content.get(name), name)
    if content.get(name) is not None:
        raise _Wrong(f"it has {name} and {name}_base64")
    return _decoded(encoded, f"{name}_base64")


def _headers(headers: Any) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = []
    for header in headers if isinstance(headers, list) else [headers]:
        match header:
            case [str(name), {"base64": encoded}]:
                found.append((name, _decoded(encoded, f"header {name}")))
            case [str(name), value]:
                found.append((name, _text(value, f"header {name}")))
            case _:
                raise _Wrong("headers is no list of [name, value]")
    return found


def _text(value: Any, name: str) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Wrong(f"{name} is no string, and not null")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _Wrong(f"{name} is no text that UTF-8 can hold") from None


def _decoded(encoded: Any, name: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError):
        raise _Wrong(f"{name} is no base64") from None


def _whole(content: Mapping[str, Any], name: str) -> int | None:
    value = content.get(name)
    if value is not None and type(value) is not int:
        raise _Wrong(f"{name} is no whole number")
    return value
