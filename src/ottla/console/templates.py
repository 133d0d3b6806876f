"""Renders the templates of `pages/`; every value is escaped."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ottla import __version__
from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted, iso, size_words, span_words

_DAY_MS = 86_400_000
_FEW = 8


def rendered(template: str, **values: Any) -> str:
    """Return a page, or a part of one, as HTML."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ottla.console", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["version"] = __version__
    environment.filters.update(
        size=size_words,
        counted=counted,
        number=lambda value: f"{value:,}",
        time=iso,
        distance=distance,
        few=few,
    )
    return environment


def distance(timestamp_ms: int, now: datetime) -> str:
    """Say how far a time is from now: `12 s ago`, `in 3 hours` for a clock that is ahead."""
    if timestamp_ms < 0:
        return "no time"
    span = round(now.timestamp() * 1000) - timestamp_ms
    if abs(span) < 1_000:
        return "now"
    words = _largest_unit(abs(span))
    return f"{words} ago" if span > 0 else f"in {words}, by this machine's clock"


def _largest_unit(span_ms: int) -> str:
    if span_ms >= 2 * _DAY_MS:
        return counted(span_ms // _DAY_MS, "day")
    for unit_ms in (3_600_000, 60_000, 1_000):
        if span_ms >= 2 * unit_ms:
            return span_words(span_ms // unit_ms * unit_ms)
    return span_words(span_ms // 1_000 * 1_000)


def few(names: Iterable[TopicPartition], most: int = _FEW) -> str:
    """Return the first names, and the number of further ones."""
    every = [str(name) for name in names]
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
