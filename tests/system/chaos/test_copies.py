"""What copiers did is judged as it was; real ones are in `tests/system/clients`."""

from dataclasses import replace
from pathlib import Path

import pytest
from chaos.transactions.task import ABORTED, COMMITTED, CopyTask, Notes, parsed_task, read_notes
from chaos.transactions.verdict import Copied, Verdict, judge

VALUES = [b"0", b"1", b"2", b"3"]
FIRST, SECOND, GIVEN_UP = "c.7.1/2", "c.7.2/2", "c.7.3/2"
RIGHT = [
    Copied(0, 0, b"0", FIRST),
    Copied(1, 0, b"1", FIRST),
    Copied(0, 2, b"2", SECOND),
    Copied(1, 2, b"3", SECOND),
]
NOTES = {FIRST: COMMITTED, GIVEN_UP: ABORTED}


def found(committed: list[Copied], meanwhile: list[Copied] | None = None) -> Verdict:
    seen = committed if meanwhile is None else meanwhile
    return judge(VALUES, committed, seen, len(committed) + 2, NOTES)


def test_what_is_right_is_good() -> None:
    """Four records of two transactions; what was aborted is only in the log."""
    verdict = found(RIGHT)
    assert verdict.is_good
    assert (verdict.records, verdict.transactions, verdict.given_up, verdict.hidden) == (4, 2, 1, 2)


def test_what_is_wrong_is_counted() -> None:
    """Lost, doubled, torn, aborted and missing ones, and those that a reader saw otherwise."""
    lost = found(RIGHT[:-1])
    assert (lost.lost, lost.doubled, lost.torn, lost.is_good) == (1, 0, 1, False)
    doubled = found([*RIGHT, Copied(0, 9, b"2", None)])
    assert (doubled.lost, doubled.doubled, doubled.torn, doubled.is_good) == (0, 1, 0, False)
    aborted = found([*RIGHT[:3], Copied(1, 2, b"3", GIVEN_UP)])
    assert (aborted.aborted_read, aborted.torn, aborted.is_good) == (1, 2, False)
    missing = found([record._replace(transaction=SECOND) for record in RIGHT])
    assert (missing.missing, missing.is_good) == (1, False)
    differs = found(RIGHT, [*RIGHT[:3], Copied(1, 3, b"3", SECOND)])
    assert (differs.read_differently, differs.is_good) == (2, False)


def test_what_a_killed_copier_noted_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last note may be torn; a task comes back from a command line as it was."""
    task = CopyTask("c", "librdkafka", "h:1", "g", "in", "out", 4, 50, 5, tmp_path)
    monkeypatch.setattr("sys.argv", ["copier", *task.words()])
    assert parsed_task() == task
    notes = Notes(task)
    name = notes.name(50)
    assert name.endswith(".1/50")
    notes.note(name, COMMITTED)
    (file,) = tmp_path.glob("*.notes")
    with file.open("a") as opened:
        opened.write('["c.1.2/5')
    assert read_notes(tmp_path) == {name: COMMITTED}


def test_one_transaction_in_so_many_is_given_up(tmp_path: Path) -> None:
    """The third of a process is the first; none where nobody asks for it."""
    task = CopyTask("c", "librdkafka", "h:1", "g", "in", "out", 4, 50, 5, tmp_path)

    def given_up(aborts: int) -> list[int]:
        notes = Notes(replace(task, aborts=aborts))
        found = []
        for number in range(1, 10):
            notes.name(50)
            if notes.is_to_be_given_up():
                found.append(number)
        return found

    assert given_up(5) == [3, 8]
    assert given_up(0) == []
