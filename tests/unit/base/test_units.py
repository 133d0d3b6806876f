"""Points in time, spans and sizes as people write them."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.base.quantities import amount, moment_ms, size_bytes, size_words, span_ms, span_words

NOW = datetime(2024, 3, 10, 15, 30, tzinfo=timezone(timedelta(hours=2)))
EAST = timezone(timedelta(hours=14))


def ms(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("1w", 604_800_000),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("1.5 min", 90_000),
        ("2 days", 172_800_000),
        ("1 hour 30 minutes", 5_400_000),
        ("0", 0),
    ],
)
def test_span_is_a_number_and_a_unit(text: str, expected: int) -> None:
    """Numbers with units add up to milliseconds."""
    assert span_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10", "m", "10x", "-5m", "5  m", "10m!", "10M", "1m1", "yesterday"]
)
def test_span_without_a_unit_is_none(text: str) -> None:
    """A bare number might be anything, so it is no span."""
    assert span_ms(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@1704067200000", 1_704_067_200_000),
        ("2024-01-01T00:00:00Z", 1_704_067_200_000),
        ("2024-01-01T02:00:00+02:00", 1_704_067_200_000),
        ("2024-01-01 00:00:00.250+00:00", 1_704_067_200_250),
        ("2024-03-09", ms(2024, 3, 8, 22)),
        ("2024-03-09T09:00", ms(2024, 3, 9, 7)),
        ("now", ms(2024, 3, 10, 13, 30)),
        ("10m", ms(2024, 3, 10, 13, 20)),
        ("10m ago", ms(2024, 3, 10, 13, 20)),
        ("1 hour ago", ms(2024, 3, 10, 12, 30)),
        ("today", ms(2024, 3, 9, 22)),
        ("yesterday", ms(2024, 3, 8, 22)),
        ("yesterday 09:00", ms(2024, 3, 9, 7)),
        ("today 9:05:30", ms(2024, 3, 10, 7, 5, 30)),
        ("09:00", ms(2024, 3, 10, 7)),
    ],
)
def test_moment_without_a_zone_is_of_the_zone_of_now(text: str, expected: int) -> None:
    """Every form names one instant; a zone that is not said is that of the present."""
    assert moment_ms(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    ["", "0", "17", "20240101", "@", "@x", "2024-13-01", "tomorrow", "yesterday noon", "25:00"],
)
def test_moment_that_is_none_is_refused(text: str) -> None:
    """Digits alone are an offset, never a date; impossible days are none."""
    assert moment_ms(text, NOW) is None


digits = st.sampled_from(["9", "1", "0", "٣", "²"]).flatmap(
    lambda one: st.integers(1, 5000).map(lambda count: one * count)
)
dates = st.datetimes().map(datetime.isoformat) | st.datetimes().map("{:%Y-%m-%d}".format)
pieces = st.sampled_from(
    ["@", "-", "+", ".", ":", " ", "d", "ms", "k", "GiB", "/s", "ago", "T", "Z"]
)
# Text like what is read, and any other.
texts = st.text() | st.lists(digits | dates | pieces, max_size=5).map("".join)
zones = st.sampled_from([NOW, NOW.astimezone(UTC), NOW.astimezone(), NOW.astimezone(EAST)])


@given(texts, zones)
@example("0001-01-01", NOW)
@example("9999-12-31T23:59:59-23:59", NOW)
@example("9" * 400 + "d", NOW)
@example("@" + "9" * 5000, NOW)
@example("999999999999d ago", NOW)
def test_any_text_is_a_value_or_none(text: str, now: datetime) -> None:
    """Whatever is typed: no other exception, and nothing that 64 bits do not hold."""
    span, size, moment, number = span_ms(text), size_bytes(text), moment_ms(text, now), amount(text)
    assert span is None or 0 <= span * 1_000_000 < 1 << 63
    assert size is None or 0 < size < 1 << 62
    assert moment is None or -(1 << 62) < moment < 1 << 63
    assert number is None or math.isfinite(number)


@pytest.mark.parametrize("span", [0, 1, 999, 1_000, 61_000, 5_400_000, 604_800_000, 86_399_999])
def test_what_is_shown_as_a_span_is_read_as_that_span(span: int) -> None:
    """A reader may write what commands show."""
    assert span_ms(span_words(span)) == span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500000", 500_000),
        ("500k", 500_000),
        ("512kB", 512_000),
        ("10M", 10_000_000),
        ("10MB/s", 10_000_000),
        ("2Mi", 2 << 20),
        ("1.5 GiB", 3 << 29),
        ("1TB", 10**12),
        ("1B", 1),
        ("0.5", 0.5),
    ],
)
def test_amount_is_a_number_and_a_unit_of_thousands_or_1024(text: str, expected: float) -> None:
    """Upper or lower case; an i makes it 1024."""
    assert amount(text) == expected
    assert amount(text.lower()) == expected


@pytest.mark.parametrize("text", ["", "k", "i", "1x", "1ki i", "--1", "1,000", "1d", "1e3", "nan"])
def test_amount_in_other_words_is_none(text: str) -> None:
    """No exponent, no other unit."""
    assert amount(text) is None


def test_size_is_at_least_a_byte_and_fits_into_64_bits() -> None:
    """As does every setting that holds one."""
    assert [size_bytes(text) for text in ("1B", size_words(64 << 20))] == [1, 64 << 20]
    assert [size_bytes(text) for text in ("0", "-1", "0.5", "9999999TiB")] == [None] * 4
