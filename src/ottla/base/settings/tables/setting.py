"""The declaration of a setting: name, type, default, validator, and how it may change at runtime.

The other modules of this package are tables of such rows. Names, types and defaults are those of
Kafka 4.3 unless `differs` says otherwise.
"""

import math
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

from ottla.base.errors import ErrorCode, OttlaError, shortened

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """Types of values, with their numbers in DescribeConfigs v3+ (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(Enum):
    """Where a broker setting may be changed without a restart (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Use(Enum):
    """Whether Ottla implements a Kafka setting."""

    USED = "used"
    # Accepted, so that an existing server.properties works; it changes nothing.
    UNUSED = "unused"
    # An error, because ignoring it would be wrong: it enables a feature that is missing.
    REFUSED = "refused"


class Validator(NamedTuple):
    """A rule for values, with its description in the notation of Kafka's documentation."""

    rule: str
    # Returns the complaint, or "" if the value is valid.
    complaint: Callable[[Value], str]


class Setting(NamedTuple):
    """One row of a table of settings."""

    name: str
    type: ConfigType
    default: Value
    validator: Validator | None
    update: UpdateMode
    doc: str
    # Why our default or behaviour deliberately differs from Kafka's; "" if it does not.
    differs: str = ""
    use: Use = Use.USED
    # Internal settings are accepted but not described to clients.
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether the value is never sent to clients."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """Return the typed value of `text`.

        Raises OttlaError(INVALID_CONFIG), which names the rule and the value.
        """
        text = text.strip()
        value = _parse_typed(self, text)
        if self.validator is not None and (complaint := self.validator.complaint(value)):
            raise _invalid(self, text, complaint)
        return value

    def text_of(self, value: Value) -> str | None:
        """Format `value` as Kafka prints it in DescribeConfigs; None stays None."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return _java_double(value)
        return str(value)


_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def _parse_typed(setting: Setting, text: str) -> Value:
    kind = setting.type
    if kind in _INTEGER_BITS:
        return _parse_integer(setting, text, _INTEGER_BITS[kind])
    if kind is ConfigType.BOOLEAN:
        lowered = text.lower()
        if lowered not in {"true", "false"}:
            raise _invalid(setting, text, "write true or false")
        return lowered == "true"
    if kind is ConfigType.DOUBLE:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise _invalid(setting, text, "write a number, such as 0.5")
        return number
    if kind is ConfigType.LIST:
        items = [item.strip() for item in text.split(",")] if text else []
        return tuple(dict.fromkeys(item for item in items if item))
    return text


def _parse_integer(setting: Setting, text: str, bits: int) -> int:
    try:
        number = int(text) if "_" not in text else None
    except ValueError:
        number = None
    if number is None:
        raise _invalid(setting, text, "write a whole number without unit")
    limit = 1 << bits - 1
    if not -limit <= number < limit:
        raise _invalid(setting, text, f"it must lie between {-limit} and {limit - 1}")
    return number


def _invalid(setting: Setting, text: str, complaint: str) -> OttlaError:
    shown = "(hidden)" if setting.sensitive else shortened(text)
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {shown} for configuration {setting.name}: {complaint}",
    )


def _java_double(value: float) -> str:
    """Format a number like Java's Double.toString, so that both brokers print the same digits."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(digits) - len(fraction) - 1
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD

READ_ONLY = UpdateMode.READ_ONLY
PER_BROKER = UpdateMode.PER_BROKER
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
# An internal topic is created by one request, which may create no more partitions than this.
PARTITIONS_MAX = 10_000
DOUBLE_MAX = 1.7976931348623157e308
