"""A broker's audit log: lines of canonical JSON, each with the SHA-256 of the line before it.

A line is a JSON object in ASCII with sorted keys and without spaces, and ends with a newline.
`line` is its number in the broker's chain, from 1 on. `previous` is the SHA-256 of the previous
line without its newline, in lower-case hex; in line 1 it is 64 zeros. Files are named
`ottla-audit-<broker>-<first line>.log`. A head file in the same folder has the number and the hash
of the last line that is on the disk.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

# The value of `previous` in line 1.
NO_LINE = "0" * 64
# Without the newline. A longer line loses its details.
LINE_BYTES_MAX = 64 << 10
_TEXT_MAX = 300
# The kinds of lines: about clients, and about the log itself.
EVENTS = (
    *("denied", "changed", "login", "login_failed"),
    *("start", "stop", "removed", "altered", "missing", "lost", "torn"),
)
_FILE = re.compile(r"ottla-audit-(\d+)-(\d{20})\.log")
_HEAD_FILE = re.compile(r"ottla-audit-(\d+)\.head")
_HEAD = re.compile(r"([0-9]{1,20}) ([0-9a-f]{64})\n?")

# The fields of a line except `line` and `previous`: texts, integers, lists and objects of them.
Event = Mapping[str, Any]


class Line(NamedTuple):
    """A line that was read."""

    number: int
    previous: str
    fields: Event

    @property
    def event(self) -> str:
        """Return the kind of the line."""
        return str(self.fields.get("event"))


class Head(NamedTuple):
    """The last line of a chain: its number and its hash."""

    number: int
    hash: str


class AuditFile(NamedTuple):
    """A file of a broker's chain. Sorting files puts their lines in order."""

    broker: int
    # The number of its first line.
    first: int
    name: str


class Tail(NamedTuple):
    """The end of a file."""

    last: Line | None
    head: str
    # The bytes after the last newline; None if there are none.
    torn: bytes | None
    # The bytes that complete the file, so that the next line starts a new line.
    missing: bytes


def bounded(text: str) -> str:
    """Return a client's text as used in lines: not longer than 300 characters."""
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


def canonical(fields: Event) -> bytes:
    """Return the only valid spelling of a line, without the newline."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode("ascii")


def hash_of(line: bytes) -> str:
    """Return the hash of a line without its newline, as the next line contains it."""
    return hashlib.sha256(line).hexdigest()


class Chain:
    """Appends lines after the last one, whose number is `number` and whose hash is `head`."""

    def __init__(self, number: int = 0, head: str = NO_LINE) -> None:
        self.number = number
        self.head = head

    def link(self, event: Event) -> bytes:
        """Return the next line, with its newline."""
        self.number += 1
        place = {"line": self.number, "previous": self.head}
        line = canonical({**event, **place})
        if len(line) > LINE_BYTES_MAX:
            kept = {name: value for name, value in event.items() if isinstance(value, str | int)}
            line = canonical({**kept, "detail": {"too_long_bytes": len(line)}, **place})
        self.head = hash_of(line)
        return line + b"\n"

    def skip(self, number: int) -> None:
        """Continue after `number`: the lines in between are lost, and their numbers stay unused."""
        assert number >= self.number
        self.number = number


def parse_line(line: bytes) -> Line | None:
    """Parse a line; return None for bytes that no broker writes."""
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


def find_tail(data: bytes) -> Tail:
    """Return the tail of a file, found in its last bytes; `last` is None if they contain no line.

    The first bytes may be the rest of a line that begins before them.
    """
    missing = b"\n" if data and not data.endswith(b"\n") else b""
    whole = data + missing
    end = len(whole)
    while end > 0:
        begin = whole.rfind(b"\n", 0, end - 1) + 1
        line = parse_line(whole[begin : end - 1])
        if line is not None:
            head = hash_of(whole[begin : end - 1])
            return Tail(line, head, whole[end:-1] if end < len(whole) else None, missing)
        end = begin
    return Tail(None, NO_LINE, whole[:-1] if whole else None, missing)


# -- names


def file_name(broker: int, first: int) -> str:
    """Return the name of the file that begins with line `first`."""
    return f"ottla-audit-{broker}-{first:020}.log"


def parse_file_name(name: str) -> AuditFile | None:
    """Parse a file name; return None if it is not an audit file's name."""
    found = _FILE.fullmatch(name)
    return None if found is None else AuditFile(int(found[1]), int(found[2]), name)


def head_name(broker: int) -> str:
    """Return the name of a broker's head file."""
    return f"ottla-audit-{broker}.head"


def parse_head_name(name: str) -> int | None:
    """Return the broker of a head file's name; None for other names."""
    found = _HEAD_FILE.fullmatch(name)
    return None if found is None else int(found[1])


def head_text(head: Head) -> bytes:
    """Return the content of the head file."""
    return f"{head.number} {head.hash}\n".encode()


def parse_head(data: bytes) -> Head | None:
    """Parse a head file; return None for other content."""
    found = _HEAD.fullmatch(data.decode("ascii", "replace"))
    return None if found is None else Head(int(found[1]), found[2])
