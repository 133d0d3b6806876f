"""What commands say of tables and changes."""

import click
import pytest

from ottla.cli.common import options
from ottla.cli.text.output import show, show_one


def test_table_puts_numbers_right_and_words_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns line up; what is missing is a dash; nothing is cut."""
    rows = [
        {"name": "a", "end_offset": 5, "isr": [1, 2], "internal": False},
        {"name": "longer", "end_offset": None, "isr": [], "internal": True},
    ]
    show("table", rows, ["name", "end_offset", "isr", "internal"])
    assert capsys.readouterr().out == (
        "name    end offset  isr   internal\n"
        "a                5  1, 2  no\n"
        "longer           -  -     yes\n"
    )


def test_empty_table_says_so_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that reads the table reads nothing, and JSON stays JSON."""
    show("table", [], ["name"], empty="there are no topics")
    assert capsys.readouterr() == ("", "there are no topics\n")
    show("json", [], ["name"], empty="there are no topics")
    assert capsys.readouterr() == ("[]\n", "")


def test_one_answer_is_lines_of_name_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Names line up."""
    show_one("table", {"state": "Empty", "end_offset": 3})
    assert capsys.readouterr().out == "state       Empty\nend offset  3\n"


def test_settings_are_split_at_the_first_sign() -> None:
    """A value may hold the sign, or be empty."""
    assert options.parse_settings(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(click.BadParameter, match="'a' is not NAME=VALUE"):
        options.parse_settings(["a"])


def test_a_setting_is_not_set_and_unset_at_once() -> None:
    """None stands for the default."""
    assert options.parse_changes(["a=1"], ["b"]) == {"a": "1", "b": None}
    with pytest.raises(click.BadParameter, match="both set and unset"):
        options.parse_changes(["a=1"], ["a"])
