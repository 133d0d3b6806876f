"""Values of settings with units: `retention.ms=7d`, `segment.bytes=512Mi`, and Kafka's numbers.

The command line and `ottla.client` accept units, and the command line shows them. Brokers and
`.properties` files get plain numbers, so that Kafka's own tools read the same values.
"""

import re
from collections.abc import Iterator

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.quantities import amount, span_ms
from ottla.base.settings.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.tables.setting import ConfigType, Setting

_WHOLE = re.compile(r"[+-]?\d+")
_INTEGERS = (ConfigType.SHORT, ConfigType.INT, ConfigType.LONG)
# The unit in milliseconds, by the end of a setting's name.
_SPANS_MS = (
    (".ms", 1),
    (".millis", 1),
    (".secs", 1_000),
    (".seconds", 1_000),
    (".minutes", 60_000),
    (".hours", 3_600_000),
)
_SHORT_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_SHORT_SIZES = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def plain_value(name: str, text: str) -> str:
    """Convert `text` to the plain value of the setting `name`.

    Plain numbers stay as they are, and so does every value of a setting that is not a whole number
    or not in a table. Raises OttlaError(INVALID_CONFIG) for a unit that does not fit.
    """
    value = text.strip()
    setting = _setting(name)
    if setting is None or setting.type not in _INTEGERS or _WHOLE.fullmatch(value):
        return text
    unit_ms = next((ms for end, ms in _SPANS_MS if name.endswith(end)), None)
    return _count(name, value) if unit_ms is None else _span(name, value, unit_ms)


def with_unit(name: str, value: str) -> str:
    """Format a broker's `value` with a unit, in a form that `plain_value` reads back.

    A value that no unit fits is returned unchanged.
    """
    setting = _setting(name)
    if setting is None or setting.type not in _INTEGERS or not value.isdecimal():
        return value
    unit_ms = next((ms for end, ms in _SPANS_MS if name.endswith(end)), None)
    if unit_ms is not None:
        return _short_span(int(value) * unit_ms) or value
    units = _SHORT_SIZES if name.endswith((".bytes", ".size")) else ()
    whole = (f"{int(value) // size}{unit}" for unit, size in units if int(value) % size == 0)
    return next(whole, value) if int(value) else value


def _short_span(span_ms: int) -> str:
    """Format a span as `7d` or `1h30m`; empty for 0 and if it needs more than two units."""
    parts: list[str] = []
    for unit, unit_ms in _SHORT_SPANS:
        count, span_ms = divmod(span_ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) if len(parts) <= 2 else ""


def _setting(name: str) -> Setting | None:
    tables: Iterator[dict[str, Setting]] = iter((TOPIC_SETTINGS, BROKER_SETTINGS, GROUP_SETTINGS))
    return next((table[name] for table in tables if name in table), None)


def _span(name: str, value: str, unit_ms: int) -> str:
    length_ms = span_ms(value)
    if length_ms is None:
        raise _invalid(name, value, "write a whole number, or a span such as 500ms, 10m or 7d")
    count, rest = divmod(length_ms, unit_ms)
    if rest:
        unit = name.rpartition(".")[2]
        raise _invalid(name, value, f"it counts whole {unit}")
    return str(count)


def _count(name: str, value: str) -> str:
    number = amount(value)
    if number is None or not number.is_integer():
        raise _invalid(name, value, "write a whole number, such as 500000, 500k or 512Mi")
    return str(int(number))


def _invalid(name: str, value: str, remedy: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {shortened(value)} for configuration {name}: {remedy}",
    )
