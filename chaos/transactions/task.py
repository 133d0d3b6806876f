"""What a copier is told on its command line, and how it notes what became of its transactions."""

import argparse
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

# Copiers that note their transactions name them in a header of each record they write.
HEADER = "transaction"
COMMITTED, ABORTED = "committed", "aborted"
# Which of a process's transactions is the first to be given up.
_FIRST_ABORT = 3


@dataclass(frozen=True, slots=True)
class CopyTask:
    """Who the copier is, what it passes on, and where it writes down what it did.

    `size` records at most make a transaction. One in `aborts` is given up when it could be
    committed, none where that is 0.
    """

    name: str
    kind: str
    bootstrap: str
    group: str
    source: str
    target: str
    partitions: int
    size: int
    aborts: int
    folder: Path
    # librdkafka's `metadata.recovery.strategy`.
    recovery: str = "rebootstrap"

    @property
    def transactional_id(self) -> str:
        """The same for all processes that take each other's place."""
        return f"{self.group}.{self.name}"

    def words(self) -> list[str]:
        """The command line that `parsed_task` understands."""
        words = []
        for field in fields(self):
            words += [f"--{field.name}", str(getattr(self, field.name))]
        return words


def parsed_task() -> CopyTask:
    """The task on this process's command line."""
    parser = argparse.ArgumentParser()
    for field in fields(CopyTask):
        parser.add_argument(f"--{field.name}", required=True)
    words = vars(parser.parse_args())
    numbers = {name: int(words.pop(name)) for name in ("partitions", "size", "aborts")}
    return CopyTask(**{**words, **numbers, "folder": Path(words["folder"])})


class Notes:
    """Names the transactions of one process, and notes how each of them ended, once it is told.

    A name is `copier.process.number/records`; one without a note may have ended either way.
    """

    def __init__(self, task: CopyTask) -> None:
        self._stem = f"{task.name}.{os.getpid()}"
        self._aborts = task.aborts
        self._number = 0
        self._file = (task.folder / f"{self._stem}.notes").open("a", encoding="utf-8")

    def name(self, records: int) -> str:
        """The name of the next transaction, which is to have so many records."""
        self._number += 1
        return f"{self._stem}.{self._number}/{records}"

    def is_to_be_given_up(self) -> bool:
        """Whether the transaction named last is one of those."""
        return self._aborts > 0 and self._number % self._aborts == _FIRST_ABORT % self._aborts

    def note(self, transaction: str, outcome: str) -> None:
        """Kept at once: the process may be killed."""
        self._file.write(json.dumps([transaction, outcome]) + "\n")
        self._file.flush()


def read_notes(folder: Path) -> dict[str, str]:
    """How transactions ended, by their names, as far as their copiers were told."""
    return dict(itertools.chain.from_iterable(map(_lines, folder.glob("*.notes"))))


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        # The last one of a killed process may be torn.
        if line.endswith("\n"):
            transaction, outcome = json.loads(line)
            yield transaction, outcome
