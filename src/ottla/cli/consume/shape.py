"""Formats a record: as text, as JSON, or by a format string. Pure."""

import base64
import json
from collections.abc import Callable
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso
from ottla.cli.text.words import unescaped
from ottla.record.codec import Record

Shape = Callable[[TopicPartition, Record], bytes]

# Characters that a terminal may interpret, with the escapes that are shown instead.
_HARMLESS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in b"\t\n"
}

_COLOURS = {"key": "blue", "string": "green", "number": "cyan", "word": "magenta"}


def values(*, keys: bool, is_terminal: bool) -> Shape:
    """Show values, one per line; with `keys`, the key and a tab come first. Null is empty."""
    if is_terminal:

        def shown(_: TopicPartition, record: Record) -> bytes:
            start = f"{_harmless(record.key)}\t" if keys else ""
            return f"{start}{_harmless(record.value)}\n".encode()

        return shown

    def plain(_: TopicPartition, record: Record) -> bytes:
        start = (record.key or b"") + b"\t" if keys else b""
        return start + (record.value or b"") + b"\n"

    return plain


def json_lines(place: TopicPartition, record: Record) -> bytes:
    """Show a record as one line of JSON."""
    return json.dumps(as_object(place, record), ensure_ascii=False).encode() + b"\n"


def pretty(*, keys: bool, whole: bool, is_terminal: bool) -> Shape:
    """Indent values that are JSON, in colours on a terminal; with `whole`, show entire records."""

    def shown(place: TopicPartition, record: Record) -> bytes:
        if whole:
            answer = as_object(place, record)
            parsed, content = _parsed(record.value)
            if parsed:
                answer["value"] = content
            return f"{_indented(answer, is_terminal)}\n".encode()
        parsed, content = _parsed(record.value)
        start = f"{_harmless(record.key)}\t" if keys else ""
        text = _indented(content, is_terminal) if parsed else _harmless(record.value)
        return f"{start}{text}\n".encode()

    return shown


def as_object(place: TopicPartition, record: Record) -> dict[str, Any]:
    """Return the record as JSON, which `ottla produce --json` reads back without a change.

    Bytes that are not UTF-8 are base64: under `…_base64`, in headers as `{"base64": …}`.
    """
    answer: dict[str, Any] = {
        "topic": place.topic,
        "partition": place.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "time": iso(record.timestamp),
    }
    for name, content in (("key", record.key), ("value", record.value)):
        text = _text(content)
        answer[name] = text
        if text is None and content is not None:
            answer[f"{name}_base64"] = base64.b64encode(content).decode()
    answer["headers"] = [[name, _header_value(content)] for name, content in record.headers]
    return answer


def _header_value(content: bytes | None) -> Any:
    text = _text(content)
    if text is None and content is not None:
        return {"base64": base64.b64encode(content).decode()}
    return text


def format_string(template: str) -> Shape:
    """Show records by a format string with kcat's letters: %k key, %s or %v value, see `--format`.

    Raises click.BadParameter for an unknown letter.
    """
    parts = _parts(unescaped(template))

    def shown(place: TopicPartition, record: Record) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(place, record) for part in parts)

    return shown


_FIELDS: dict[str, Shape] = {
    "k": lambda _, record: record.key or b"",
    "K": lambda _, record: _length(record.key),
    "s": lambda _, record: record.value or b"",
    "v": lambda _, record: record.value or b"",
    "S": lambda _, record: _length(record.value),
    "t": lambda place, _: place.topic.encode(),
    "p": lambda place, _: str(place.partition).encode(),
    "o": lambda _, record: str(record.offset).encode(),
    "T": lambda _, record: str(record.timestamp).encode(),
    "h": lambda _, record: b",".join(
        name.encode() + b"=" + (content or b"") for name, content in record.headers
    ),
    "%": lambda _place, _record: b"%",
}


def _parts(template: str) -> list[bytes | Shape]:
    parts: list[bytes | Shape] = []
    text, *fields = template.split("%")
    parts.append(text.encode())
    while fields:
        field = fields.pop(0)
        if not field:
            # Two percent signs mean one percent sign; the rest is text.
            parts.append(b"%" + (fields.pop(0) if fields else "").encode())
            continue
        if field[0] not in _FIELDS:
            known = " ".join(f"%{letter}" for letter in _FIELDS)
            raise click.BadParameter(
                f"%{field[0]} means nothing; there are {known}", param_hint="--format"
            )
        parts += [_FIELDS[field[0]], field[1:].encode()]
    return parts


def _length(content: bytes | None) -> bytes:
    """Return the length as kcat does: -1 for null."""
    return b"-1" if content is None else str(len(content)).encode()


def _text(content: bytes | None) -> str | None:
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _harmless(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "backslashreplace").translate(_HARMLESS)


def _parsed(content: bytes | None) -> tuple[bool, Any]:
    """Return whether `content` is JSON, and its value."""
    text = _text(content)
    if text is None:
        return False, None
    try:
        return True, json.loads(text)
    except (ValueError, RecursionError):
        return False, None


def _indented(content: Any, is_terminal: bool) -> str:
    if not is_terminal:
        return json.dumps(content, ensure_ascii=False, indent=2)
    return _coloured(content, "")


def _coloured(content: Any, margin: str) -> str:
    inner = margin + "  "
    match content:
        case dict() if content:
            lines = [
                f"{inner}{_paint(json.dumps(name, ensure_ascii=False), 'key')}: "
                f"{_coloured(value, inner)}"
                for name, value in content.items()
            ]
            return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
        case list() if content:
            items = [inner + _coloured(value, inner) for value in content]
            return "[\n" + ",\n".join(items) + f"\n{margin}]"
        case str():
            return _paint(json.dumps(content, ensure_ascii=False).translate(_HARMLESS), "string")
        case bool() | None:
            return _paint(json.dumps(content), "word")
        case int() | float():
            return _paint(json.dumps(content), "number")
        case _:
            return json.dumps(content)


def _paint(text: str, kind: str) -> str:
    return click.style(text, fg=_COLOURS[kind])
