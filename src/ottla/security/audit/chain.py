"""The end of a chain, to which lines are added, and how it is found after a crash."""

from typing import NamedTuple

from ottla.security.audit.line import (
    LINE_BYTES_MAX,
    NO_LINE,
    Event,
    Line,
    canonical,
    hash_of,
    parse_line,
)


class Chain:
    """Adds lines behind the last one."""

    def __init__(self, number: int = 0, head: str = NO_LINE) -> None:
        """`number` is that of the last line, `head` its hash."""
        self.number = number
        self.head = head

    def link(self, event: Event) -> bytes:
        """The next line, with its newline."""
        self.number += 1
        line = canonical({**event, "line": self.number, "previous": self.head})
        if len(line) > LINE_BYTES_MAX:
            kept = {name: value for name, value in event.items() if isinstance(value, str | int)}
            short = {**kept, "detail": {"too_long_bytes": len(line)}}
            line = canonical({**short, "line": self.number, "previous": self.head})
        self.head = hash_of(line)
        return line + b"\n"

    def skip(self, number: int) -> None:
        """The next line comes after `number`: those in between are gone, and stay unused."""
        assert number >= self.number
        self.number = number


class Tail(NamedTuple):
    """How a file ends."""

    last: Line | None
    head: str
    # The bytes behind the last line, without a final newline; None where there are none.
    torn: bytes | None
    # What completes the file, so that the next line begins a line.
    missing: bytes


def find_tail(data: bytes) -> Tail:
    """The tail of a file from its last bytes; `last` is None where no line is among them.

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
