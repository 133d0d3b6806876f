"""Checks a broker's chain: finds lines that were removed, changed, inserted or moved.

A chain proves that its lines belong together, not that the broker wrote it. With write access to
the folder the whole chain can be rewritten, or its end cut off together with the head file. Only a
hash that was stored elsewhere reveals that: the `anchor` of `ChainCheck`.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from ottla.security.audit.chain import NO_LINE, AuditFile, Head, Line, hash_of, parse_line

_NO_LINE_OF_A_BROKER = "was changed: it is none that a broker writes"


class Remark(NamedTuple):
    """A finding with its place. `line` counts the lines of the file, from 1 on."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else self.text


class Verified(NamedTuple):
    """The result for one chain."""

    broker: int
    # Numbers of the first and the last line, and the hash of the last; 0 and "" without lines.
    first: int
    last: int
    head: str
    # The number of the line whose hash is the anchor; 0 if there is none.
    anchor_line: int
    # The first line that the anchor proves: from there to the anchor's line, each line has the hash
    # of the previous one. 0 if it proves none.
    proven_from: int
    # The line that records that retention removed the lines before the first; 0 if none are
    # missing.
    retention_line: int
    # Damage.
    problems: tuple[Remark, ...]
    # Findings that are no damage, such as an end after a crash.
    notes: tuple[Remark, ...]

    @property
    def intact(self) -> bool:
        """Whether no damage was found."""
        return not self.problems


class _Garbage:
    """Bytes between two lines that are not a line."""

    def __init__(self) -> None:
        self.position = 0
        self._size = 0
        self._digest = hashlib.sha256()

    def add(self, data: bytes, position: int) -> None:
        if self.position:
            data = b"\n" + data
        else:
            self.position = position
        self._size += len(data)
        self._digest.update(data)

    def is_of(self, line: Line) -> bool:
        """Whether the broker recorded these bytes as the torn end of an earlier run."""
        fields = line.fields
        return (
            line.event == "torn"
            and fields.get("bytes") == self._size
            and fields.get("sha256") == self._digest.hexdigest()
        )


class ChainCheck:
    """Reads the files of one broker in order, and then returns the findings."""

    def __init__(
        self,
        broker: int,
        *,
        is_whole: bool = True,
        noted: Head | None = None,
        anchor: str | None = None,
    ) -> None:
        """Create the check.

        `is_whole` says that all files of the broker are read, so that missing ones are problems.
        `noted` is the head file's content. `anchor` is the hash of a line, from outside the folder.
        """
        self._broker = broker
        self._is_whole = is_whole
        self._noted = noted
        self._anchor = anchor
        self._anchor_line = 0
        self._proven_from = 0
        # The first line of the unbroken part of the chain.
        self._linked_from = 0
        self._first = 0
        self._first_at = ("", 0)
        # The hash of the previous line, as the first line contains it.
        self._before = NO_LINE
        self._last = 0
        self._head = NO_LINE
        # Ends of files removed by retention, by number: the hash, and the line that records it.
        self._removed: dict[int, tuple[str, int]] = {}
        self._retention_line = 0
        # The bytes after the last line of the file read last.
        self._trailing: Remark | None = None
        self._problems: list[Remark] = []
        self._notes: list[Remark] = []

    def read(self, file: AuditFile, lines: Iterable[bytes]) -> None:
        """Check the next file; `lines` have their newlines, except perhaps the last."""
        if self._trailing is not None:
            # The broker continued in another file, so it did not crash here.
            self._problems.append(self._trailing._replace(text=_NO_LINE_OF_A_BROKER))
            self._trailing = None
        garbage = _Garbage()
        is_first = True
        position = 0
        for raw in lines:
            position += 1
            data = raw.removesuffix(b"\n")
            line = parse_line(data)
            if line is None:
                garbage.add(data, position)
                continue
            if garbage.position:
                self._judge_garbage(file, garbage, line)
                garbage = _Garbage()
            if is_first and line.number != file.first:
                self._problem(
                    file, position, f"begins with line {line.number}, and its name says otherwise"
                )
            is_first = False
            self._check(file, position, line)
            self._last, self._head = line.number, hash_of(data)
            self._compare(file, position)
        if garbage.position:
            text = "what is behind the last line is none: the broker writes it now, or died there"
            self._trailing = Remark(file.name, garbage.position, text)

    def finish(self) -> Verified:
        """Return the result."""
        self._judge_beginning()
        if self._trailing is not None:
            self._notes.append(self._trailing)
        noted = self._noted
        if noted is not None and noted.number > self._last:
            missing = _lines(self._last + 1, noted.number)
            self._problems.append(
                Remark("", 0, f"the end is cut off: the head file knows {missing}")
            )
        head = self._head if self._last else ""
        return Verified(
            self._broker,
            self._first,
            self._last,
            head,
            self._anchor_line,
            self._proven_from,
            self._retention_line,
            tuple(self._problems),
            tuple(self._notes),
        )

    def _judge_garbage(self, file: AuditFile, garbage: _Garbage, line: Line) -> None:
        if garbage.is_of(line):
            text = f"a line that the broker had not finished when it died, as line {line.number}"
            self._notes.append(Remark(file.name, garbage.position, f"{text} says"))
        else:
            self._problem(file, garbage.position, _NO_LINE_OF_A_BROKER)

    def _check(self, file: AuditFile, position: int, line: Line) -> None:
        if line.fields.get("broker") != self._broker:
            self._problem(file, position, f"is of broker {line.fields.get('broker')}")
        if not self._first:
            self._first, self._before = line.number, line.previous
            self._first_at = file.name, position
            self._linked_from = line.number
        elif line.previous != self._head:
            self._linked_from = line.number
            self._problem(file, position, _broken(self._last + 1, line.number))
        elif line.number != self._last + 1 and line.event != "missing":
            self._problem(file, position, f"has number {line.number} after {self._last}")
        if line.event == "missing":
            gone = _lines(_integer(line, "first"), _integer(line, "last"))
            self._problem(file, position, f"the broker found that {gone} had been cut off")
        elif line.event == "altered":
            self._problem(file, position, "the broker found the line before it changed")
        elif line.event == "removed":
            said = str(line.fields.get("hash")), line.number
            self._removed[_integer(line, "last")] = said

    def _compare(self, file: AuditFile, position: int) -> None:
        """Compare the last line with the head file and the anchor."""
        noted = self._noted
        if noted is not None and noted.number == self._last and noted.hash != self._head:
            text = f"line {self._last} was changed: the head file has another hash of it"
            self._problem(file, position, text)
        if self._anchor == self._head:
            self._anchor_line, self._proven_from = self._last, self._linked_from

    def _judge_beginning(self) -> None:
        """Check that the lines before the first one were removed by retention."""
        first = self._first
        if first == 1 and self._before != NO_LINE:
            self._problems.append(Remark(*self._first_at, "line 1 was changed"))
        if first <= 1:
            return
        hash_said, said_by = self._removed.get(first - 1, ("", 0))
        if hash_said == self._before:
            self._retention_line = said_by
            text = f"{_lines(1, first - 1)} were removed by retention, as line {said_by} says"
            self._notes.append(Remark("", 0, text))
        elif self._is_whole:
            text = f"{_lines(1, first - 1)} are missing, and no line says that retention did it"
            self._problems.append(Remark("", 0, text))
        else:
            self._notes.append(Remark("", 0, f"{_lines(1, first - 1)} are in other files"))

    def _problem(self, file: AuditFile, position: int, text: str) -> None:
        self._problems.append(Remark(file.name, position, text))


def _integer(line: Line, field: str) -> int:
    value = line.fields.get(field)
    return value if isinstance(value, int) else 0


def _broken(expected: int, found: int) -> str:
    if found > expected:
        verb = "was" if found - 1 == expected else "were"
        return f"{_lines(expected, found - 1)} before it {verb} removed"
    if found < expected:
        return f"line {found} is again or out of order: inserted or moved"
    return f"line {found} was not written behind the line before it: one of the two was changed"


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"
