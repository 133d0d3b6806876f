r"""Hides parts of records by rules, before anything is searched or shown. Pure.

The rules are in a TOML file; a record is changed by all rules whose pattern matches its topic:

    [[mask]]
    topics = "customers|orders-.*"      # A regular expression for the whole name; default: all.
    fields = ["card.number", "*.email"] # Fields of JSON keys and values; * is any field or item.
    headers = ["authorization"]         # Values of headers with these names.
    pattern = '\b\d{16}\b'            # What matches it in keys, values and headers.

Where a rule has `fields`, a key or value that is no JSON object or list is hidden as a whole,
because its parts are not known.
"""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.patterns import compiled
from ottla.diagnosis.record_choice import entries_of
from ottla.record.codec import Record

HIDDEN = "(hidden)"
_HIDDEN = HIDDEN.encode()
# Larger keys and values are hidden as a whole where a rule may concern a part of them.
_SIZE_MAX = 1 << 20
_NAMES = ("topics", "fields", "headers", "pattern")


@dataclass(frozen=True, slots=True)
class Mask:
    """One rule. `topics` and `pattern` are compiled by RE2."""

    topics: Any
    fields: tuple[tuple[str, ...], ...]
    headers: frozenset[str]
    pattern: Any

    def applied(self, record: Record) -> Record:
        """Return the record with what this rule hides replaced."""
        return Record(
            record.offset,
            record.timestamp,
            self._content(record.key),
            self._content(record.value),
            [
                (name, _HIDDEN if name in self.headers else self._matched(content))
                for name, content in record.headers
            ],
        )

    def _content(self, content: bytes | None) -> bytes | None:
        if content is None or not (self.fields or self.pattern is not None):
            return content
        if len(content) > _SIZE_MAX:
            return _HIDDEN
        return self._matched(self._without_fields(content) if self.fields else content)

    def _matched(self, content: bytes | None) -> bytes | None:
        if content is None or self.pattern is None:
            return content
        if len(content) > _SIZE_MAX:
            return _HIDDEN
        replaced: bytes = self.pattern.sub(_HIDDEN, content)
        return replaced

    def _without_fields(self, content: bytes) -> bytes:
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            return _HIDDEN
        if not isinstance(document, dict | list):
            return _HIDDEN
        count = sum(_hide(document, path) for path in self.fields)
        if not count:
            return content
        return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _hide(document: Any, path: Sequence[str]) -> int:
    """Replace the values at `path` in place; return how many there were."""
    step, rest = path[0], path[1:]
    count = 0
    for name, inner in entries_of(document):
        if step not in ("*", str(name)):
            continue
        if rest:
            count += _hide(inner, rest)
        else:
            document[name] = HIDDEN
            count += 1
    return count


@dataclass(frozen=True, slots=True)
class Masks:
    """All rules."""

    rules: tuple[Mask, ...] = ()

    def of(self, topic: str) -> tuple[Mask, ...]:
        """Return the rules for a topic."""
        return tuple(rule for rule in self.rules if rule.topics.fullmatch(topic))


def applied(rules: Sequence[Mask], record: Record) -> Record:
    """Return the record as visitors may see it."""
    for rule in rules:
        record = rule.applied(record)
    return record


def parse_masks(text: str) -> Masks:
    """Parse a file of rules. Raises OttlaError(INVALID_CONFIG) for anything it does not know."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"it is no TOML: {error}") from None
    rules = content.pop("mask", [])
    if content or not isinstance(rules, list):
        raise _wrong(f"it has {', '.join(content) or 'mask'} and may have [[mask]] tables only")
    return Masks(tuple(_mask(rule, number) for number, rule in enumerate(rules, 1)))


def _mask(rule: Any, number: int) -> Mask:
    if not isinstance(rule, dict):
        raise _wrong(f"rule {number} is no table; write [[mask]]")
    unknown = [name for name in rule if name not in _NAMES]
    if unknown:
        raise _wrong(f"rule {number} has {unknown[0]!r}; there are {', '.join(_NAMES)}")
    if not any(rule.get(name) for name in _NAMES[1:]):
        raise _wrong(f"rule {number} hides nothing; give fields, headers or pattern")
    topics, pattern = rule.get("topics", ".*"), rule.get("pattern")
    for name, value in (("topics", topics), ("pattern", pattern)):
        if not isinstance(value, str | None):
            raise _wrong(f"{name} of rule {number} is no text")
    fields, headers = _texts(rule, "fields", number), _texts(rule, "headers", number)
    return Mask(
        _compiled(topics, number),
        tuple(tuple(path.split(".")) for path in fields),
        frozenset(headers),
        None if pattern is None else _compiled(pattern, number),
    )


def _texts(rule: dict[str, Any], name: str, number: int) -> list[str]:
    value = rule.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise _wrong(f'{name} of rule {number} is no list of texts, such as ["card.number"]')
    return value


def _compiled(pattern: str, number: int) -> Any:
    try:
        return compiled(pattern, f"rule {number}")
    except OttlaError as error:
        raise _wrong(error.message) from None


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, f"the file of masks cannot be used: {what}")
