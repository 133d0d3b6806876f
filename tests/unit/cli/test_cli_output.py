"""Tables, and single answers."""

import pytest

from ottla.cli.text.output import show, show_one


def test_a_row_is_one_line_and_numbers_are_right_aligned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Programs that read lines find whole rows, however long."""
    rows = [{"setting": "x" * 300, "doc": "y " * 300, "count": 7}, {"setting": "z", "count": 1234}]
    show("table", rows, ["setting", "doc", "count"])
    titles, long, short = capsys.readouterr().out.splitlines()
    assert titles.split() == ["setting", "doc", "count"]
    assert long.endswith("   7")
    assert short.split() == ["z", "-", "1234"]
    assert len(titles) == len(long) == len(short)


def test_values_of_one_answer_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """One answer is lines of name and value with a column of values."""
    show_one("table", {"doc_of": "one two", "n": 3})
    assert capsys.readouterr().out.splitlines() == ["doc of  one two", "n       3"]
