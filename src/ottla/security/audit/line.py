"""One line of an audit log: canonical JSON with the SHA-256 of the line before it.

A line is a JSON object in ASCII, its keys sorted, without spaces, and ends with a newline. `line`
is its number in the broker's chain, from 1 on; `previous` the SHA-256 of the line before it, as
lower-case hex, without the newline; that of line 1 is 64 zeros.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

# What line 1 has in place of a hash.
NO_LINE = "0" * 64
# Without the newline. A longer line loses its details.
LINE_BYTES_MAX = 64 << 10
_TEXT_MAX = 300
# What lines are about: clients, and the log itself.
EVENTS = (
    "denied",
    "changed",
    "login",
    "login_failed",
    "start",
    "stop",
    "removed",
    "altered",
    "missing",
    "lost",
    "torn",
)

# The fields of a line besides `line` and `previous`: texts, integers, lists and objects of them.
Event = Mapping[str, Any]


class Line(NamedTuple):
    """A line that was read."""

    number: int
    previous: str
    fields: Event

    @property
    def event(self) -> str:
        """What kind of line it is."""
        return str(self.fields.get("event"))


def canonical(fields: Event) -> bytes:
    """The one spelling of a line, without the newline."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode("ascii")


def hash_of(line: bytes) -> str:
    """The hash of a line without its newline, as the next line carries it."""
    return hashlib.sha256(line).hexdigest()


def parse_line(line: bytes) -> Line | None:
    """The line; None where these bytes are none that a broker writes."""
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    number, previous = fields.get("line"), fields.get("previous")
    if type(number) is not int or number < 1 or not isinstance(previous, str):
        return None
    return Line(number, previous, fields) if canonical(fields) == line else None


def bounded(text: str) -> str:
    """A client's text as a line has it: not longer than 300 characters."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
