"""Patterns of topics that clients send."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.consumer.targets import require_pattern


def test_a_pattern_takes_little_memory() -> None:
    """A quarter of a mebibyte, and not the eight that RE2 allows; many names still fit."""
    require_pattern("|".join(f"topic-{number}" for number in range(190)))
    with pytest.raises(OttlaError, match="pattern too large") as refused:
        require_pattern("[^\\x00]{1000}" * 20)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
