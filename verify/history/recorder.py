"""Writes a history down while it happens."""

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from verify.history.operation import Operation, Step, from_lines, to_line


class HistoryRecorder:
    """`invoke` returns a number; `ok`, `fail` or `info` with it ends the operation.

    Keeps the lines, and writes them to `file` at once where one is given.
    """

    def __init__(self, now_s: Callable[[], float], file: IO[str] | None = None) -> None:
        self._now_s = now_s
        self._file = file
        self._last_op = 0
        # The process of each operation that has not ended, and what it does.
        self._open: dict[int, tuple[str, str]] = {}
        self.lines: list[str] = []

    def invoke(self, process: str, f: str, *, steps: Sequence[Step] = (), **fields: Any) -> int:
        """An operation begins."""
        self._last_op += 1
        self._open[self._last_op] = (process, f)
        if steps:
            fields["steps"] = steps
        self._write({"type": "invoke", "process": process, "op": self._last_op, "f": f, **fields})
        return self._last_op

    def ok(
        self,
        op: int,
        *,
        steps: Sequence[Step] | None = None,
        offsets: Mapping[str, int] | None = None,
    ) -> None:
        """It was done, with this result."""
        self._end(op, "ok", steps, offsets)

    def fail(self, op: int) -> None:
        """It was certainly not done."""
        self._end(op, "fail", None, None)

    def info(self, op: int) -> None:
        """It is not known whether it was done."""
        self._end(op, "info", None, None)

    def operations(self) -> list[Operation]:
        """What was written down so far."""
        return from_lines(self.lines)

    def unanswered(self, f: str) -> list[int]:
        """Operations of a kind that have begun and not ended."""
        return sorted(op for op, (_, of) in self._open.items() if of == f)

    def _end(
        self,
        op: int,
        outcome: str,
        steps: Sequence[Step] | None,
        offsets: Mapping[str, int] | None,
    ) -> None:
        fields: dict[str, Any] = {
            "type": outcome,
            "process": self._open.pop(op)[0],
            "op": op,
        }
        if steps is not None:
            fields["steps"] = steps
        if offsets is not None:
            fields["offsets"] = offsets
        self._write(fields)

    def _write(self, fields: dict[str, Any]) -> None:
        line = to_line({**fields, "t": round(self._now_s(), 6)})
        self.lines.append(line)
        if self._file is not None:
            self._file.write(line + "\n")
