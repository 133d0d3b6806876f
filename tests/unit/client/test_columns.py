"""Columns of keys and values are checked."""

import pytest

from ottla.client.common.errors import ClientError
from ottla.client.producer.router import rows


def test_text_columns_are_utf8_and_nulls_stay() -> None:
    """Mixed columns are checked value by value."""
    every = rows(["a", None, b"c"], [b"k", "l", None], [1, 2, 3], 0)
    assert every.values == [b"a", None, b"c"]
    assert every.keys == [b"k", b"l", None]
    assert every.timestamps == [1, 2, 3]


def test_rows_keep_their_columns_together() -> None:
    """Columns that were not given are not made up."""
    every = rows([b"a", b"b", b"c"], [b"k", b"l", b"m"], None, 7)
    taken = every.take([2, 0])
    assert (taken.values, taken.keys) == ([b"c", b"a"], [b"m", b"k"])
    assert (taken.timestamps, taken.now_ms) == (None, 7)


def test_a_callers_list_may_change_while_its_records_are_sent() -> None:
    """Batches are cut from a copy."""
    given: list[bytes | str | None] = [b"a"]
    every = rows(given, None, None, 0)
    given.append(b"b")
    assert every.values == [b"a"]


def test_columns_of_different_lengths_are_refused() -> None:
    """The error counts them."""
    with pytest.raises(ClientError, match="2 values, 1 keys and 2 timestamps"):
        rows([b"a", b"b"], [b"k"], None, 0)


def test_other_types_are_refused() -> None:
    """Numbers are not guessed an encoding for."""
    with pytest.raises(ClientError, match="bytes, str or None, not int"):
        rows([1], None, None, 0)  # type: ignore[list-item]  # The point of the test.
