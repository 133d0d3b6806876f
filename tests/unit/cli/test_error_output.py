"""Whether the words of a command ask for errors as JSON."""

import pytest

from ottla.cli.common.error_output import wants_json


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list", "-o", "json"],
        ["topic", "list", "--output", "json"],
        ["topic", "list", "--output=json", "--no-such"],
        ["topic", "-ojson"],
        ["consume", "t", "--json"],
    ],
)
def test_json_is_asked_for(words: list[str]) -> None:
    """In each way that is written, also where other words are wrong."""
    assert wants_json(words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["topic", "list"],
        ["topic", "list", "-o", "table"],
        ["topic", "list", "-o"],
        ["produce", "t", "--", "-o", "json"],
    ],
)
def test_json_is_not_asked_for(words: list[str]) -> None:
    """Nor behind the end of the options."""
    assert not wants_json(words)
