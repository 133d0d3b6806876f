"""Formats sizes, spans, times and counts for people, and parses what people write. Pure."""

import math
import re
from datetime import UTC, datetime, timedelta

_SPAN_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))


def size_words(size: float) -> str:
    """Format a size in bytes: `1.5 MiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def span_words(span_ms: int) -> str:
    """Format a span in milliseconds: `7 days`, `1 hour 30 minutes`, `250 ms`."""
    words: list[str] = []
    for name, unit_ms in _SPAN_UNITS:
        count, span_ms = divmod(span_ms, unit_ms)
        if count:
            words.append(counted(count, name))
    if span_ms or not words:
        words.append(f"{span_ms} ms")
    return " ".join(words)


def iso(timestamp_ms: int) -> str:
    """Format a Unix time as ISO 8601 in UTC; as a bare number if it is outside of the calendar."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, noun: str) -> str:
    """Format a count and its noun: `1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_UNITS_MS = {
    ("ms",): 1,
    ("s", "sec", "second", "seconds"): 1_000,
    ("m", "min", "minute", "minutes"): 60_000,
    ("h", "hour", "hours"): 3_600_000,
    ("d", "day", "days"): 86_400_000,
    ("w", "week", "weeks"): 7 * 86_400_000,
}
_UNIT_MS = {name: unit_ms for names, unit_ms in _UNITS_MS.items() for name in names}
_SPAN_PART = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+) ?")
_SPAN = re.compile(f"(?:{_SPAN_PART.pattern})+")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?) ?([kmgt]?i?)(?:b|bytes)?(?:/s)?")
_FACTORS = {"": 1.0} | {
    prefix + infix: float(base**power)
    for power, prefix in enumerate("kmgt", 1)
    for infix, base in (("", 1000), ("i", 1024))
}
_SIZES = range(1, 1 << 62)
_SPANS = range((1 << 63) // 1_000_000)  # As nanoseconds they fit into 64 bits, as clocks count.
_AT = re.compile(r"@([0-9]{1,19})")
_DAYS_BACK = {"today": 0, "yesterday": 1}
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")

SPAN_FORMS = "500ms, 30s, 10m, 1h30m or 7d"
SIZE_FORMS = "500k, 128MB or 2Gi"
MOMENT_FORMS = (
    "2024-01-31, 2024-01-31T09:00:00Z, 'yesterday 09:00', @1704067200000 (ms) or 10m (ago)"
)


def span_ms(text: str) -> int | None:
    """Parse `10m`, `1h30m`, `2 days`, `500ms` or `0` as milliseconds; None for other text."""
    text = text.strip()
    if text == "0":
        return 0
    if not _SPAN.fullmatch(text):
        return None
    parts = [(float(number), _UNIT_MS.get(unit)) for number, unit in _SPAN_PART.findall(text)]
    if any(unit_ms is None for _, unit_ms in parts):
        return None
    total = sum(number * (unit_ms or 0) for number, unit_ms in parts)
    return round(total) if total < _SPANS.stop - 1 else None


def amount(text: str) -> float | None:
    """Parse a number such as `500000`, `500k`, `2Mi`, `1.5 GiB` or `10MB/s`; else return None."""
    match = _NUMBER.fullmatch(text.strip().lower())
    if match is None or match[2] not in _FACTORS:
        return None
    found = float(match[1]) * _FACTORS[match[2]]
    return found if math.isfinite(found) else None


def size_bytes(text: str) -> int | None:
    """Parse a size, or a rate per second, of at least one byte; None for other text."""
    found = amount(text)
    return int(found) if found is not None and int(found) in _SIZES else None


def moment_ms(text: str, now: datetime) -> int | None:
    """Parse a time in one of the `MOMENT_FORMS` as milliseconds since 1970; None for other text.

    A time without a zone is in the zone of `now`, which must have one. None also for years before 1
    or after 9999, but `@` accepts all times that fit into 64 bits.
    """
    assert now.tzinfo is not None
    text = text.strip()
    if (at := _AT.fullmatch(text)) is not None:
        return int(at[1]) if int(at[1]) < 1 << 63 else None
    if text == "now":
        return _ms(now)
    # Bare digits are offsets or numbers, never a date without hyphens.
    if text.isdecimal():
        return None
    if (ago_ms := span_ms(text.removesuffix(" ago"))) is not None:
        return _ms(now) - ago_ms
    moment = _day(text, now) or _iso(text)
    if moment is None:
        return None
    try:
        if moment.tzinfo is None:
            # By the zone's rules for that day, including summer time.
            moment = moment.astimezone() if _is_local(now) else moment.replace(tzinfo=now.tzinfo)
        return _ms(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return None  # On the first or last days of the calendar, elsewhere.


def _day(text: str, now: datetime) -> datetime | None:
    """`today`, `yesterday 09:00`, `09:00`: a time relative to `now`, in its zone."""
    word, _, rest = text.partition(" ")
    if word in _DAYS_BACK:
        clock = rest.strip() or "00:00"
    elif rest:
        return None
    else:
        word, clock = "today", text
    match = _CLOCK.fullmatch(clock)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups())
    if hour > 23 or minute > 59 or second > 59:
        return None
    day = now - timedelta(days=_DAYS_BACK[word])
    return datetime(day.year, day.month, day.day, hour, minute, second)


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _is_local(now: datetime) -> bool:
    return now.utcoffset() == now.astimezone().utcoffset()


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
