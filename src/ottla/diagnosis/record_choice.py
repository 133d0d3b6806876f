"""Which records to show: from where on, and those that match a condition. Pure.

A condition is one text, the same for `ottla consume --where` and for the console's search:

    key=42                     the key is this text
    value.customer.city=Bern   the field of a JSON value is this text, number, true, false or null
    header.trace~^ab           a header's value matches a regular expression (RE2)
    value!=ok  value!~^debug   the opposite
    any other text             key, value or a header contains it
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ottla.base import quantities
from ottla.base.errors import OttlaError, WrongWords, shortened
from ottla.base.patterns import compiled
from ottla.record.codec import Record


@dataclass(frozen=True, slots=True)
class Position:
    """A position in every partition of a topic.

    `number` is the offset, the count of last records, or the time in ms; otherwise 0.
    """

    kind: Literal["earliest", "latest", "offset", "last", "time"]
    number: int = 0


def position_of(text: str, now: datetime) -> Position:
    """Parse `earliest`, `latest`, an offset, `-N` for the last N records, or a time.

    `now` has a time zone, which is that of times without one. Raises WrongWords.
    """
    text = text.strip()
    if text in ("earliest", "beginning"):
        return Position("earliest")
    if text in ("latest", "end"):
        return Position("latest")
    if text.isdecimal():
        return Position("offset", int(text))
    if text.startswith("-") and text[1:].isdecimal():
        return Position("last", int(text[1:]))
    time_ms = quantities.moment_ms(text, now)
    if time_ms is None:
        raise WrongWords(
            f"{text!r} is no place in a log; write earliest, latest, an offset, -N for the last "
            f"N records, or a time: {quantities.MOMENT_FORMS}"
        )
    return Position("time", time_ms)


# Whether a record is to be shown.
Condition = Callable[[Record], bool]

_TERM = re.compile(
    r"(?P<field>key|value|header)(?:\.(?P<path>[^=~!\s]+))?(?P<operator>!?[=~])(?P<text>.*)",
    re.DOTALL,
)
WHERE_FORMS = "key=42, value.city=Bern, header.trace~^ab, or a text to find anywhere"


def condition_of(text: str) -> Condition | None:
    """Parse a condition; None for an empty text, which all records meet.

    Several terms are separated by blanks, and all must hold; quotation marks keep blanks together.
    Raises WrongWords.
    """
    text = text.strip()
    if not text:
        return None
    if _TERM.match(text) is None:
        return _contains(text.encode("utf-8", "surrogateescape"))
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise WrongWords(
            f"{shortened(text)!r} is no condition: {error}; write {WHERE_FORMS}"
        ) from None
    terms = [_term(word) for word in words]
    return lambda record: all(term(record) for term in terms)


def _term(word: str) -> Condition:
    match = _TERM.fullmatch(word)
    if match is None:
        raise WrongWords(
            f"{shortened(word)!r} is no part of a condition; write {WHERE_FORMS}, and put a text "
            "with blanks into quotation marks"
        )
    contents = _contents(match["field"], match["path"])
    operator, text = match["operator"], match["text"]
    test = _equals(text) if operator.endswith("=") else _matches(text)
    if operator.startswith("!"):
        return lambda record: not any(map(test, contents(record)))
    return lambda record: any(map(test, contents(record)))


def _equals(text: str) -> Callable[[bytes], bool]:
    wanted = text.encode("utf-8", "surrogateescape")
    return lambda content: content == wanted


def _matches(text: str) -> Callable[[bytes], bool]:
    try:
        pattern = compiled(text, "the condition's pattern")
    except OttlaError as error:
        raise WrongWords(error.message, error.code) from None
    return lambda content: pattern.search(content) is not None


def _contents(field: str, path: str | None) -> Callable[[Record], list[bytes]]:
    """Return the function that finds the contents of a field in a record; null is none."""
    if field == "header":
        return lambda record: [
            content or b"" for name, content in record.headers if path is None or name == path
        ]
    steps = path.split(".") if path else []

    def contents(record: Record) -> list[bytes]:
        content = record.key if field == "key" else record.value
        if content is None:
            return []
        return [content] if not steps else list(_texts_at(content, steps))

    return contents


def _contains(text: bytes) -> Condition:
    def contained(record: Record) -> bool:
        return (
            text in (record.value or b"")
            or text in (record.key or b"")
            or any(
                text in name.encode() or text in (value or b"") for name, value in record.headers
            )
        )

    return contained


def _texts_at(content: bytes, steps: Sequence[str]) -> Iterator[bytes]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return
    for found in values_at(document, steps):
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        yield text.encode("utf-8", "surrogatepass")


def values_at(document: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path in a JSON document; the step `*` means each field or item."""
    if not steps:
        yield document
        return
    step, rest = steps[0], steps[1:]
    for name, inner in entries_of(document):
        if step in ("*", str(name)):
            yield from values_at(inner, rest)


def entries_of(document: Any) -> list[tuple[str | int, Any]]:
    """Return the fields of an object, or the items of a list by their numbers."""
    if isinstance(document, dict):
        return list(document.items())
    return list(enumerate(document)) if isinstance(document, list) else []
