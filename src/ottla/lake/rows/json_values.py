"""Reads JSON by orjson, or by the standard library if numbers must keep all their digits."""

import json
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from ottla.lake.model.types import Type
from ottla.lake.rows.field_reader import BadValue

# Confluent's framing may precede a JSON value; no JSON begins with a zero byte.
_FRAMING = 5
# Deeper values are refused: code that reads the value later recurses at each level.
_DEPTH_MAX = 512


class JsonReader:
    """Reads one JSON value. `exact`: numbers with a point are decimals, not floats."""

    type: Type | None = None

    def __init__(self, *, exact: bool = False) -> None:
        self._loads = _exact if exact else orjson.loads

    def read(self, content: bytes) -> Any:
        if content[:1] == b"\x00":
            content = content[_FRAMING:]
        try:
            return self._loads(content)
        except (ValueError, RecursionError, InvalidOperation) as error:
            raise BadValue(f"no JSON: {error or type(error).__name__}") from None


def _exact(content: bytes) -> Any:
    _require_shallow(content)
    # With duplicate names, the last one wins, as in orjson.
    found = json.loads(content.decode(), parse_float=Decimal, parse_constant=_no_number)
    if b"\\u" in content:
        # Half of a surrogate pair fails here, also in names, as it does in orjson.
        json.dumps(found, default=str, ensure_ascii=False).encode()
    return found


def _require_shallow(content: bytes) -> None:
    """Refuse deep nesting, which would recurse deeply: one pass if there are many brackets."""
    if content.count(b"[") + content.count(b"{") <= _DEPTH_MAX:
        return
    depth, quoted, escaped = 0, False, False
    for byte in content:
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = byte == 0x5C, byte != 0x22
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            depth += 1
            if depth > _DEPTH_MAX:
                raise ValueError(f"it nests deeper than {_DEPTH_MAX} levels")
        elif byte in b"]}":
            depth -= 1


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
