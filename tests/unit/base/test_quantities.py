"""Sizes, spans, times and counts as people read them."""

import pytest

from ottla.base.quantities import counted, iso, size_words, span_words


def test_size_words() -> None:
    """Sizes are told in the unit that keeps them short."""
    assert [size_words(size) for size in (0, 1023, 1536, 1 << 20, 5 << 40)] == [
        "0 bytes",
        "1,023 bytes",
        "1.5 KiB",
        "1.0 MiB",
        "5.0 TiB",
    ]


def test_iso_is_utc_or_the_number() -> None:
    """A time beyond every calendar is shown as the number it is."""
    assert iso(1_704_067_200_000) == "2024-01-01T00:00:00.000Z"
    assert iso(2**62) == "4611686018427387904"


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (604_800_000, "7 days"),
        (86_400_000, "1 day"),
        (5_400_000, "1 hour 30 minutes"),
        (1_500, "1 second 500 ms"),
        (0, "0 ms"),
    ],
)
def test_span_words_name_each_unit_once(span: int, words: str) -> None:
    """Units that are zero are not mentioned."""
    assert span_words(span) == words


def test_counted_knows_one_from_many() -> None:
    """Thousands are set apart."""
    assert [counted(count, "row") for count in (0, 1, 2, 2_000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "2,000 rows",
    ]
