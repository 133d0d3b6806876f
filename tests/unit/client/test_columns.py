"""Columns are cut into batches."""

import pytest

from ottla.client.columns import chunks, rows
from ottla.client.errors import ClientError
from ottla.client.queues import RECORD_OVERHEAD


def test_chunks_are_as_full_as_they_can_be_and_in_order() -> None:
    """A record larger than the limit goes alone."""
    values = [b"x" * size for size in (10, 10, 10, 500, 10)]
    cut = list(chunks(rows(values, None, None, 7), 2 * (RECORD_OVERHEAD + 10)))
    assert [[len(value or b"") for value in part.values] for part in cut] == [
        [10, 10],
        [10],
        [500],
        [10],
    ]
    assert [part.size for part in cut] == [44, 22, 512, 22]
    assert cut[0].timestamps == [7, 7]


def test_text_columns_are_utf8_and_nulls_stay() -> None:
    """Mixed columns are checked value by value."""
    every = rows(["a", None, b"c"], [b"k", "l", None], [1, 2, 3], 0)
    assert every.values == [b"a", None, b"c"]
    assert every.keys == [b"k", b"l", None]
    assert every.timestamps == [1, 2, 3]


def test_columns_of_different_lengths_are_refused() -> None:
    """The error counts them."""
    with pytest.raises(ClientError, match="2 values, 1 keys and 2 timestamps"):
        rows([b"a", b"b"], [b"k"], None, 0)


def test_other_types_are_refused() -> None:
    """Numbers are not guessed an encoding for."""
    with pytest.raises(ClientError, match="bytes, str or None, not int"):
        rows([1], None, None, 0)  # type: ignore[list-item]  # The point of the test.
