"""Times and spans on the command line."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ottla.cli.text.moment import moment_ms, span_ms

NOW = datetime(2024, 3, 10, 15, 30, tzinfo=timezone(timedelta(hours=2)))


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
    ],
)
def test_span_is_a_number_and_a_unit(text: str, expected: int) -> None:
    """Numbers with units add up to milliseconds."""
    assert span_ms(text) == expected


@pytest.mark.parametrize("text", ["", "10", "m", "10x", "-5m", "5 m", "10m!", "yesterday"])
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
    "text", ["", "17", "20240101", "@", "@x", "2024-13-01", "tomorrow", "yesterday noon", "25:00"]
)
def test_moment_that_is_none_is_refused(text: str) -> None:
    """Digits alone are an offset, never a date; impossible days are none."""
    assert moment_ms(text, NOW) is None
