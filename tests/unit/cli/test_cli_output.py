"""Tables on terminals of any width."""

import pytest

from ottla.cli.text.output import fitted, show, show_one

ROWS = [
    {"setting": "log.retention.check.interval.ms", "doc": "Time between two looks", "count": 300000}
]
COLUMNS = ["setting", "doc", "count"]


def test_columns_of_text_give_way_and_the_first_one_last() -> None:
    """Numbers keep their width; the name is wrapped when the texts are as narrow as is readable."""
    assert fitted([31, 60, 6], [False, False, True], 80) == [31, 39, 6]
    assert fitted([57, 180, 6], [False, False, True], 80) == [36, 34, 6]
    assert fitted([31, 60, 6], [False, False, True], 50) == [26, 14, 6]
    assert fitted([31, 60, 6], [False, False, True], 30) is None
    assert fitted([31, 60, 6], [False, False, True], None) == [31, 60, 6]


@pytest.mark.parametrize("width", [24, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_letter_is_lost(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the width, every cell can be read whole."""
    monkeypatch.setenv("COLUMNS", str(width))
    show("table", ROWS, COLUMNS)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    letters = "".join(out.split())
    for word in ("Time", "300000"):
        assert word in letters
    if width >= 60:
        assert "log.retention.check.interval.ms" in out


def test_what_goes_into_a_pipe_is_one_line_a_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Programs that read lines find whole rows, however long."""
    monkeypatch.delenv("COLUMNS", raising=False)
    show("table", [{"setting": "x" * 300, "doc": "y " * 300}], ["setting", "doc"])
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_values_that_wrap_stay_below_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One answer is lines of name and value with a column of values."""
    monkeypatch.setenv("COLUMNS", "30")
    show_one("table", {"doc": "one two three four five six", "n": 3})
    assert capsys.readouterr().out.splitlines() == [
        "doc  one two three four five",
        "     six",
        "n    3",
    ]
