"""Positions and escapes on the command line."""

import click
import pytest

from ottla.cli.text.words import interval, moment, position, size, span, unescaped
from ottla.diagnosis.record_choice import Position


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", Position("earliest")),
        ("beginning", Position("earliest")),
        ("latest", Position("latest")),
        ("end", Position("latest")),
        ("0", Position("offset", 0)),
        ("17", Position("offset", 17)),
        ("-5", Position("last", 5)),
        ("@1704067200000", Position("time", 1_704_067_200_000)),
        ("2024-01-01T00:00:00Z", Position("time", 1_704_067_200_000)),
    ],
)
def test_position_is_a_name_an_offset_or_a_time(text: str, expected: Position) -> None:
    """Digits are an offset, a minus counts from the end, everything else is a time."""
    assert position(text) == expected


@pytest.mark.parametrize("text", ["", "newest", "-x", "1.5"])
def test_position_that_is_none_says_what_can_be_written(text: str) -> None:
    """The message lists the forms."""
    with pytest.raises(click.BadParameter, match="earliest, latest, an offset"):
        position(text)


def test_words_that_are_none_say_what_can_be_written() -> None:
    """Each message gives examples."""
    with pytest.raises(click.BadParameter, match="10m"):
        moment("soon")
    for type_ in (span, interval):
        with pytest.raises(click.BadParameter, match="30s, 10m, 1h30m or 7d"):
            type_("10")
    with pytest.raises(click.BadParameter, match="too short"):
        interval("0s")
    with pytest.raises(click.BadParameter, match="500k, 128MB or 2Gi"):
        size("10 apples")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\t", "\t"),
        (r"a\nb\r\0", "a\nb\r\0"),
        (r"\x41\x7c", "A|"),
        (r"\\t", r"\t"),
        (r"\q", r"\q"),
        ("\\", "\\"),
        ("plain", "plain"),
    ],
)
def test_unescaped_reads_the_letters_of_c(text: str, expected: str) -> None:
    """Other backslashes stay as they are."""
    assert unescaped(text) == expected


def test_unescaped_refuses_half_a_byte() -> None:
    r"""\x takes two digits."""
    with pytest.raises(click.BadParameter, match="two hexadecimal digits"):
        unescaped(r"\xg1")
