"""What one client did, written down: a file for each partition, so that each is judged alone.

No law ties what happens in one partition to another, and a judge that looks at one at a time
needs the memory of one. What a group does as such stands in a file of its own.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from verify.history.operation import NEVER, Operation, Outcome, Step, from_lines, to_line

# The part of what a group does as such.
GROUP = "group"


class Histories:
    """Takes operations that have ended."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._numbers = itertools.count(1)
        self._files: dict[str, IO[str]] = {}

    def record(
        self,
        part: str,
        f: str,
        times_s: tuple[float, float],
        outcome: Outcome = "ok",
        **fields: Any,
    ) -> None:
        """An operation on one part, with the times at which it began and ended.

        `fields` are those of `Operation`; an operation that nobody answered ends NEVER.
        """
        operation = {"process": self._name, "op": next(self._numbers)}
        begin = {"type": "invoke", **operation, "f": f, "t": round(times_s[0], 6), **fields}
        text = to_line(begin) + "\n"
        if times_s[1] != NEVER:
            text += to_line({"type": outcome, **operation, "t": round(times_s[1], 6)}) + "\n"
        self._file(part).write(text)

    def record_reads(self, times_s: tuple[float, float], steps: Iterable[Step]) -> None:
        """What was read at once, from whatever partitions."""
        by_partition: dict[str, list[Step]] = {}
        for step in steps:
            by_partition.setdefault(step.partition, []).append(step)
        for part, found in by_partition.items():
            self.record(part, "poll", times_s, steps=found)

    def close(self) -> None:
        """Nothing comes any more."""
        for file in self._files.values():
            file.close()

    def _file(self, part: str) -> IO[str]:
        if part not in self._files:
            path = self._folder / f"{self._name}.{part}.history"
            # Whole lines at once: who looks on sees that the client is at work.
            self._files[part] = path.open("w", encoding="ascii", buffering=1)
        return self._files[part]


def parts(folder: Path) -> list[str]:
    """What was written about here: partitions, and perhaps the group."""
    return sorted({file.name.split(".")[1] for file in folder.glob("*.history")})


def read(folder: Path, part: str) -> list[Operation]:
    """All clients' operations on one part, in the order in which they began."""
    operations: list[Operation] = []
    for file in sorted(folder.glob(f"*.{part}.history")):
        with file.open(encoding="ascii") as lines:
            # The last line of a client that was killed may have been cut off.
            operations += from_lines(line for line in lines if line.endswith("\n"))
    operations.sort(key=lambda operation: operation.begin_s)
    return operations
