"""Statistics of a file in the words of Delta's protocol."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from ottla.lake.tables.statistics import FileStatistics

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def delta_statistics(found: FileStatistics, kinds: dict[str, str]) -> str:
    """Return the JSON text of `found`; `kinds` has Delta's type of each column that may stand."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, bounds in found.columns.items():
        kind = kinds.get(name)
        if kind is None:
            continue
        nulls[name] = bounds.nulls
        least, greatest = _value(bounds.low, kind), _value(bounds.high, kind)
        if least is not None and greatest is not None:
            low[name], high[name] = least, greatest
    content = {"numRecords": found.rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return json.dumps(content, separators=(",", ":"))


def _value(stored: int, kind: str) -> int | str | None:
    if kind in {"integer", "long", "short", "byte"}:
        return stored
    if kind != "timestamp" or stored % 1000:
        return None  # Delta's text has milliseconds, and would be a wrong bound.
    try:
        time = _EPOCH + timedelta(microseconds=stored)
    except OverflowError:
        return None
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z" if time.year > 999 else None
