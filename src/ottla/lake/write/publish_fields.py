"""Maps the named columns of a row to the parts of a record. Pure."""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.rows.publish_row import Row

_HEX_NAME = "\ufffdhex:"


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns that make a record. `value` None: all columns as JSON."""

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    partition: str | None = None
    headers: str | None = None


def over(given: Fields | None, found: Fields) -> Fields:
    """Return `found`, replaced by `given` where that names a column."""
    if given is None:
        return found
    named = {name: column for name, column in asdict(given).items() if column is not None}
    return replace(found, **named)


# The columns of a table that `ottla lake load` wrote.
RAW = Fields(key="key", value="value", timestamp="timestamp", headers="headers")


def as_row(fields: Fields, columns: Mapping[str, Any]) -> Row:
    """Return the record of a row. Raises OttlaError if a column is missing or does not fit."""
    value = _json(columns) if fields.value is None else as_bytes(_column(columns, fields.value))
    key = None if fields.key is None else as_bytes(_column(columns, fields.key))
    partition = None if fields.partition is None else _column(columns, fields.partition)
    at = None if fields.timestamp is None else _column(columns, fields.timestamp)
    found = None if fields.headers is None else _column(columns, fields.headers)
    return Row(
        key,
        value,
        [_header(entry) for entry in found or ()],
        None,
        None if partition is None else _number(fields.partition or "", partition),
        None if at is None else milliseconds(at),
    )


def _column(columns: Mapping[str, Any], name: str) -> Any:
    try:
        return columns[name]
    except KeyError:
        raise _wrong(f"there is no column {name!r}; there are {', '.join(columns)}") from None


def as_bytes(value: Any) -> bytes | None:
    """Return a column as key or value: text as UTF-8, bytes unchanged, anything else as JSON."""
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
    return _json(value)


def milliseconds(value: Any) -> int:
    """Return a time in milliseconds since 1970; ISO 8601 text without a zone is UTC."""
    if isinstance(value, bool):
        raise _wrong(f"the timestamp {value!r} is no time")
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise _wrong(f"the timestamp {value!r} is neither milliseconds nor ISO 8601") from None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


def _header(entry: Mapping[str, Any]) -> tuple[str, bytes | None]:
    name = entry["key"]
    if name.startswith(_HEX_NAME):
        raise _wrong(f"a header's name is not UTF-8 (bytes {name.removeprefix(_HEX_NAME)})")
    return name, entry["value"]


def _number(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise _wrong(f"column {name!r} has {value!r}, which is no partition") from None


def _json(value: Any) -> bytes:
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"publish: {what}")
