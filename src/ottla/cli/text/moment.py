"""Times and spans as people write them. Pure: the present is an argument."""

import re
from datetime import datetime, timedelta

_UNIT_MS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_SPAN_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_DAYS_BACK = {"today": 0, "yesterday": 1}
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")

FORMS = "2024-01-31, 2024-01-31T09:00:00Z, 'yesterday 09:00', @1704067200000 (ms) or 10m (ago)"


def span_ms(text: str) -> int | None:
    """Milliseconds of `10m`, `1h30m`, `2d`, `500ms`; None where `text` is no span."""
    parts = _SPAN_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return round(sum(float(number) * _UNIT_MS[unit] for number, unit in parts))


def moment_ms(text: str, now: datetime) -> int | None:
    """Milliseconds since 1970 of a time in one of the `FORMS`; None where `text` is none.

    A time without a zone is one of the zone of `now`, which must have one.
    """
    assert now.tzinfo is not None
    text = text.strip()
    if text.startswith("@"):
        return int(text[1:]) if text[1:].isdecimal() else None
    if text == "now":
        return _ms(now)
    if (ago_ms := span_ms(text)) is not None:
        return _ms(now) - ago_ms
    moment = _day(text, now) or _iso(text)
    if moment is None:
        return None
    if moment.tzinfo is None:
        # By the zone's rules for that day, such as summer time.
        moment = moment.astimezone() if _is_local(now) else moment.replace(tzinfo=now.tzinfo)
    return _ms(moment)


def _day(text: str, now: datetime) -> datetime | None:
    """`today`, `yesterday 09:00`, `09:00`: a day near `now`, in its zone."""
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
    # Bare digits are offsets and numbers here, never a date without hyphens.
    if text.isdecimal():
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _is_local(now: datetime) -> bool:
    return now.utcoffset() == now.astimezone().utcoffset()


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
