"""Patterns that clients send."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.patterns import PATTERN_CHARACTERS_MAX, compiled


def test_groups_of_a_pattern_capture_nothing() -> None:
    """A match with captures is searched twice, and for nested ones takes seconds."""
    found = compiled("(" * 900 + "a+" + ")" * 900, "SubscribedTopicRegex")
    assert found.groups == 0
    assert found.fullmatch("aaa")
    assert not found.fullmatch("ab")


@pytest.mark.parametrize(
    "pattern", ["a" * (PATTERN_CHARACTERS_MAX + 1), "a{1000}" * 200, "(", "\\"]
)
def test_a_pattern_that_is_too_long_or_none_is_refused(pattern: str) -> None:
    """Repetitions count by what they become; the message names the field."""
    assert compiled("a" * PATTERN_CHARACTERS_MAX, "SubscribedTopicRegex")
    with pytest.raises(OttlaError, match="SubscribedTopicRegex") as caught:
        compiled(pattern, "SubscribedTopicRegex")
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(caught.value.message) < 1_000
