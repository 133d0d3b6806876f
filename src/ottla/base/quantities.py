"""Formats sizes, spans, times and counts for people. Pure."""

from datetime import UTC, datetime

_SPAN_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))


def size_words(size: float) -> str:
    """A size in bytes: `1.5 MiB`."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def span_words(span_ms: int) -> str:
    """A span in milliseconds: `7 days`, `1 hour 30 minutes`, `250 ms`."""
    words: list[str] = []
    for name, unit_ms in _SPAN_UNITS:
        count, span_ms = divmod(span_ms, unit_ms)
        if count:
            words.append(counted(count, name))
    if span_ms or not words:
        words.append(f"{span_ms} ms")
    return " ".join(words)


def iso(timestamp_ms: int) -> str:
    """A Unix time as ISO 8601 in UTC; the bare number if the calendar has no such day."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, noun: str) -> str:
    """A count and its noun: `1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
