"""Converts one value for an Arrow column of some type, or says in a sentence why it cannot.

Stricter than Arrow: 1.5 is not an integer, True is not a number, a text is not a list.
"""

import base64
import binascii
import json
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from ottla.lake.model.types import Type

_EXACT_FLOAT = 1 << 53
_INT64_MAX = 2**63 - 1
_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_PER_SECOND = {"(ms)": 1_000, "(us)": 1_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# Enough for 38 digits at any scale; more digits than that are refused, not rounded.
_DECIMALS = Context(prec=100)


class DoesNotFit(Exception):
    """Raised if a value does not fit into its column; says why."""


def coerced(value: Any, wanted: Type, *, base64_decimals: bool = False) -> Any:
    """Return `value` as Arrow accepts it for a column `wanted`, which is no list, map or struct.

    Raises DoesNotFit.
    """
    kind = wanted.kind
    if kind in _INTEGER_BITS:
        return _integer(value, kind)
    match kind.partition("(")[0]:
        case "boolean" if isinstance(value, bool):
            return value
        case "float64" | "float32" if _is_number(value):
            return _float(value, kind)
        case "string" if isinstance(value, str):
            return _text(value)
        case "json":
            return json_text(value)
        case "binary":
            return _bytes(value)
        case "decimal":
            return _decimal(value, wanted, base64_decimals)
        case "date":
            return _date(value)
        case "timestamp" | "datetime" | "time":
            return _time(value, kind)
    raise DoesNotFit(f"{shown(value)} is no {kind}")


def from_text(text: str, wanted: Type) -> Any:
    """Return the value of a text in CSV, as Arrow casts it. Raises DoesNotFit."""
    if wanted.kind == "json":
        return text
    try:
        return pa.scalar(_text(text)).cast(wanted.arrow).as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        pass
    try:
        if wanted.kind in {"string", "binary"} or wanted.kind.startswith(_TIMES):
            return coerced(text, wanted)
    except DoesNotFit as error:
        raise DoesNotFit(str(error)) from None
    raise DoesNotFit(f"{shown(text)} is no {wanted}")


_TIMES = ("timestamp", "datetime", "time", "date")


def json_text(value: Any) -> str:
    """Return the value as JSON; bytes in base64, decimals as texts. Raises DoesNotFit."""
    try:
        text = json.dumps(
            value, default=_json_default, ensure_ascii=False, separators=(",", ":"), sort_keys=True
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise DoesNotFit(f"no JSON can be made of it: {error}") from error
    return _text(text)


def shown(value: Any) -> str:
    """Return a value for a message, cut to a readable length."""
    try:
        text = str(value) if isinstance(value, Decimal) else repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"  # An integer with more digits than Python prints.
    return text if len(text) <= 60 else f"{text[:57]}…"


def _json_default(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal | datetime | date | time):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DoesNotFit("the text holds half a surrogate pair, which is no UTF-8") from None
    return value


def _integer(value: Any, kind: str) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOAT:
        value = int(value)
    elif isinstance(value, Decimal) and value.is_finite() and value.adjusted() < 40:
        value = int(value) if value == value.to_integral_value() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise DoesNotFit(f"{shown(value)} is no integer")
    limit = 1 << (_INTEGER_BITS[kind] - 1)
    if not -limit <= value < limit:
        raise DoesNotFit(f"{shown(value)} is beyond {kind}")
    return value


def _float(value: Any, kind: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise DoesNotFit(f"{shown(value)} is beyond {kind}") from None
    if isinstance(value, Decimal) and value.is_finite() and abs(number) == float("inf"):
        raise DoesNotFit(f"{shown(value)} is beyond {kind}")
    if kind == "float32" and number == number and abs(number) not in (0.0, float("inf")):
        narrow = pa.scalar(number, pa.float32()).as_py()
        if abs(narrow) == float("inf"):
            raise DoesNotFit(f"{shown(value)} is beyond {kind}")
    return number


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise DoesNotFit(f"{shown(value)} is no base64") from None
    raise DoesNotFit(f"{shown(value)} is no binary")


def _decimal(value: Any, wanted: Type, base64_decimals: bool) -> Decimal:
    if isinstance(value, bytes) or (isinstance(value, str) and base64_decimals):
        # Avro and Kafka Connect encode the unscaled number in two's complement.
        unscaled = int.from_bytes(_bytes(value), "big", signed=True)
        value = Decimal(unscaled).scaleb(-wanted.scale, _DECIMALS)
    elif isinstance(value, float):
        value = repr(value)
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise DoesNotFit(f"{shown(value)} is no {wanted}")
    try:
        number = Decimal(value)
    except (InvalidOperation, ValueError):
        raise DoesNotFit(f"{shown(value)} is no {wanted}") from None
    if not number.is_finite():
        raise DoesNotFit(f"{shown(value)} is no {wanted}")
    try:
        exact = number.quantize(Decimal(1).scaleb(-wanted.scale), context=_DECIMALS)
    except InvalidOperation:
        raise DoesNotFit(f"{shown(value)} is beyond {wanted}") from None
    if exact != number:
        raise DoesNotFit(f"{shown(value)} has more than {wanted.scale} digits behind the point")
    if exact.adjusted() >= wanted.precision - wanted.scale and exact:
        raise DoesNotFit(f"{shown(value)} is beyond {wanted}")
    return exact


def _date(value: Any) -> int:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value).toordinal() - _EPOCH_DAY
        except ValueError:
            raise DoesNotFit(f"{shown(value)} is no date") from None
    return _integer(value, "int32")


def _time(value: Any, kind: str) -> int:
    """Return a time as an Arrow integer: in the type's unit, since 1970 or midnight."""
    per_second = _PER_SECOND[kind[-4:]]
    if isinstance(value, str):
        number = _time_of_text(value, kind, per_second)
    else:
        number = _integer(value, "int64")
    if kind.startswith("time("):
        if not 0 <= number < 86_400 * per_second:
            raise DoesNotFit(f"{shown(value)} is no time of a day")
    elif per_second == 1_000 and abs(number) > _INT64_MAX // 1_000:
        raise DoesNotFit(f"{shown(value)} ms is beyond what a timestamp of Spark can hold")
    return number


def _time_of_text(value: str, kind: str, per_second: int) -> int:
    try:
        if kind.startswith("time("):
            at = time.fromisoformat(value)
            if at.tzinfo is not None:
                raise DoesNotFit(f"{shown(value)} has a zone, and a time of the day has none")
            micros = ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond
        else:
            moment = datetime.fromisoformat(value)
            if kind.startswith("datetime") and moment.tzinfo is not None:
                raise DoesNotFit(f"{shown(value)} has a zone: declare the column as timestamp")
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            since = moment - _EPOCH
            micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    except ValueError:
        raise DoesNotFit(f"{shown(value)} is no {kind}") from None
    number, rest = divmod(micros, 1_000_000 // per_second)
    if rest:
        raise DoesNotFit(f"{shown(value)} has digits that {kind} cannot hold")
    return number
