"""Converts Python values to Arrow columns. A value that does not fit only affects its own row.

If all values have the Python type of the column's type, Arrow makes the column in one call.
Otherwise it is made value by value. The conversion is stricter than Arrow's: 1.5 is not an integer,
True is not a number, and a text is not a list.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.model.types import Type
from ottla.lake.rows.evolution import IGNORE, DoesNotFit, FieldRules, Path, merged
from ottla.lake.rows.value_reader import shown

_EXACT_FLOAT = 1 << 53
_INT64_MAX = 2**63 - 1
_MILLIS_MAX = _INT64_MAX // 1_000
_PER_SECOND = {"(ms)": 1_000, "(us)": 1_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# Enough for 38 digits at any scale. A number with more digits is an error, and never rounded.
_DECIMALS = Context(prec=100)

# The Python type, by type of column, whose values Arrow converts without a loss.
_TAKEN_AS_THEY_ARE: Mapping[str, type] = {
    "boolean": bool,
    "int8": int,
    "int16": int,
    "int32": int,
    "int64": int,
    "float64": float,
    "string": str,
    "binary": bytes,
    "decimal": Decimal,
    "date": int,
    "timestamp(us)": int,
    "datetime(us)": int,
}
_CAST_FROM_TEXT = frozenset({"timestamp(ms)", "timestamp(us)", "date"})
_ARROW_REFUSES = (pa.ArrowException, OverflowError, ValueError, TypeError)
_NONE = type(None)


@dataclass(slots=True)
class Findings:
    """The errors in a batch, by row, and its new or wider fields.

    `news` has the first row and the type (`type_of`) of each new field, by path. The only error of
    rows in `waiting` is that a column is too narrow.
    """

    errors: dict[int, str] = field(default_factory=dict)
    news: dict[Path, tuple[int, Type]] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)


class Converter:
    """Makes the columns of one batch. With `texts`, all values are texts, from CSV."""

    def __init__(
        self, rules: FieldRules = IGNORE, *, texts: bool = False, base64_decimals: bool = False
    ) -> None:
        self._rules = rules
        self._texts = texts
        self._base64_decimals = base64_decimals
        self.findings = Findings()

    def column(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        """Return an array of type `wanted`, with null for a value that does not fit.

        `rows` has the row number in the batch of each value.
        """
        match wanted.kind:
            case "struct":
                return self._struct(values, wanted, path, rows)
            case "list":
                return self._list(values, wanted, path, rows)
            case "map":
                return self._map(values, wanted, path, rows)
        return self._plain(values, wanted, path, rows)

    def refuse(self, row: int, path: Path, why: str) -> None:
        """Record an error of a row. Only the first error of a row is kept."""
        self.findings.errors.setdefault(row, f"{'.'.join(path)}: {why}" if path else why)

    def unknown(self, values: Sequence[Any], known: frozenset[str], path: Path, rows: Any) -> None:
        """Find fields that have no column, in objects at `path`."""
        for value, row in zip(values, rows, strict=True):
            if value is not None and not known >= value.keys():
                for name in value:  # New columns have the order of the record's fields.
                    if name not in known:
                        self.found(row, (*path, name), value[name])

    def found(self, row: int, path: Path, value: Any) -> None:
        """Record a field that has no column: as a new field, or as an error, by the rules."""
        try:
            found = self._rules.added(path, value)
        except DoesNotFit as error:
            self.refuse(row, path, str(error))
            return
        if found is not None:
            self._new(row, path, found)

    def _new(self, row: int, path: Path, found: Type) -> None:
        first, before = self.findings.news.get(path, (row, found))
        self.findings.news[path] = (min(first, row), merged(before, found))

    def _of_kind(
        self, values: Sequence[Any], kind: type, what: str, path: Path, rows: Sequence[int]
    ) -> list[Any]:
        """Return the values, with None for each value of another Python type than `kind`."""
        if {type(value) for value in values} <= {kind, _NONE}:
            return list(values)
        kept = []
        for value, row in zip(values, rows, strict=True):
            fits = value is None or isinstance(value, kind)
            if not fits:
                self.refuse(row, path, f"{shown(value)} is no {what}")
            kept.append(value if fits else None)
        return kept

    def _struct(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        kept = self._of_kind(values, dict, "object", path, rows)
        self.unknown(kept, frozenset(name for name, _ in wanted.fields), path, rows)
        children = [
            self.column(
                [None if value is None else value.get(name) for value in kept],
                each,
                (*path, name),
                rows,
            )
            for name, each in wanted.fields
        ]
        if not children:
            return pa.array([None if value is None else {} for value in kept], wanted.arrow)
        mask = pa.array([value is None for value in kept], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(wanted.arrow), mask=mask)

    def _list(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        kept = self._of_kind(values, list, "list", path, rows)
        flat = [one for value in kept if value is not None for one in value]
        inner = self.column(flat, wanted.element, (*path, "[]"), _rows_of_items(kept, rows))
        return pa.ListArray.from_arrays(_offsets(kept), inner, type=wanted.arrow)

    def _map(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        kept = self._of_kind(values, dict, "object", path, rows)
        pairs = [pair for value in kept if value is not None for pair in value.items()]
        flat_rows = _rows_of_items(kept, rows)
        keys = self._plain([key for key, _ in pairs], Type("string"), (*path, "{}"), flat_rows)
        # A row with a bad key has an error already, but Arrow's maps allow no null keys.
        keys = pc.fill_null(keys, "")
        inner = self.column([one for _, one in pairs], wanted.element, (*path, "{}"), flat_rows)
        return pa.MapArray.from_arrays(_offsets(kept), keys, inner, type=wanted.arrow)

    def _plain(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        quick = _quickly(values, wanted, texts=self._texts)
        if quick is not None:
            return quick
        found = []
        for value, row in zip(values, rows, strict=True):
            try:
                found.append(None if value is None else self._one(value, wanted))
            except DoesNotFit as error:
                found.append(None)
                wider = self._rules.widened(path, wanted, value)
                if wider is None:
                    self.refuse(row, path, str(error))
                else:
                    self.findings.waiting.add(row)
                    self._new(row, path, wider)
        return pa.array(found, wanted.arrow)

    def _one(self, value: Any, wanted: Type) -> Any:
        if self._texts:
            return _from_text(value, wanted)
        if wanted.kind == "decimal":
            return _decimal(value, wanted, self._base64_decimals)
        return _CONVERTERS[wanted.kind](value)


def _quickly(values: Sequence[Any], wanted: Type, *, texts: bool) -> Any:
    """Return the column from one call to Arrow, or None if values must be converted one by one."""
    kinds = {type(value) for value in values}
    is_cast = wanted.kind != "json" if texts else wanted.kind in _CAST_FROM_TEXT
    try:
        if not texts and kinds <= {_TAKEN_AS_THEY_ARE.get(wanted.kind, _NONE), _NONE}:
            return pa.array(values, wanted.arrow)
        if is_cast and kinds <= {str, _NONE}:
            return _in_range(pa.array(values, pa.string()).cast(wanted.arrow), wanted)
    except _ARROW_REFUSES:
        pass
    return None


def _in_range(column: Any, wanted: Type) -> Any:
    """Return the column if its times fit into Spark's timestamps. Raises ValueError otherwise."""
    if wanted.kind in {"timestamp(ms)", "datetime(ms)"}:
        extremes = pc.min_max(column.cast(pa.int64()))
        for which in ("min", "max"):
            if abs(extremes[which].as_py() or 0) > _MILLIS_MAX:
                raise ValueError("a time that no timestamp of Spark can hold")
    return column


def _rows_of_items(kept: Sequence[Any], rows: Sequence[int]) -> list[int]:
    """Return the row number of each item of the lists or maps in `kept`."""
    pairs = zip(kept, rows, strict=True)
    return [row for value, row in pairs if value is not None for _ in value]


def _offsets(kept: Sequence[Any]) -> Any:
    """Return the start offset of each list for Arrow, with null for a list that is null."""
    ends = list(accumulate((0 if value is None else len(value) for value in kept), initial=0))
    mask = [value is None for value in kept] + [False]
    return pa.array(
        [None if null else end for end, null in zip(ends, mask, strict=True)], pa.int32()
    )


# -- single values, as Arrow accepts them; each raises DoesNotFit


def _from_text(text: str, wanted: Type) -> Any:
    """Return the value of a CSV field, as Arrow casts it from text."""
    if wanted.kind == "json":
        return text
    try:
        cast = pa.array([_text(text)], pa.string()).cast(wanted.arrow)
        return _in_range(cast, wanted)[0].as_py()
    except _ARROW_REFUSES:
        pass
    if wanted.kind in {"string", "binary", "date"} or wanted.kind[-4:] in _PER_SECOND:
        return _CONVERTERS[wanted.kind](text)
    raise DoesNotFit(f"{shown(text)} is no {wanted}")


def json_text(value: Any) -> str:
    """Return the value as JSON, with bytes in base64 and decimals as text. Raises DoesNotFit."""
    try:
        text = json.dumps(
            value, default=_json_default, ensure_ascii=False, separators=(",", ":"), sort_keys=True
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise DoesNotFit(f"no JSON can be made of it: {error}") from error
    return _text(text)


def _json_default(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal | datetime | date | time):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise DoesNotFit(f"{shown(value)} is no boolean")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DoesNotFit(f"{shown(value)} is no string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DoesNotFit("the text holds half a surrogate pair, which is no UTF-8") from None
    return value


def _integer(value: Any, bits: int) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOAT:
        value = int(value)
    elif isinstance(value, Decimal) and value.is_finite() and value.adjusted() < 40:
        value = int(value) if value == value.to_integral_value() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise DoesNotFit(f"{shown(value)} is no integer")
    limit = 1 << (bits - 1)
    if not -limit <= value < limit:
        raise DoesNotFit(f"{shown(value)} is beyond int{bits}")
    return value


def _float(value: Any, kind: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise DoesNotFit(f"{shown(value)} is no {kind}")
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
    if not isinstance(value, str):
        raise DoesNotFit(f"{shown(value)} is no binary")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise DoesNotFit(f"{shown(value)} is no base64") from None


def _decimal(value: Any, wanted: Type, base64_decimals: bool) -> Decimal:
    if isinstance(value, bytes) or (isinstance(value, str) and base64_decimals):
        # Avro and Kafka Connect encode a decimal as its unscaled number in two's complement.
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
    if not isinstance(value, str):
        return _integer(value, 32)
    try:
        return date.fromisoformat(value).toordinal() - _EPOCH_DAY
    except ValueError:
        raise DoesNotFit(f"{shown(value)} is no date") from None


def _time(value: Any, kind: str) -> int:
    """Return a time as an integer for Arrow, in the type's unit since 1970 or midnight."""
    per_second = _PER_SECOND[kind[-4:]]
    if isinstance(value, str):
        number = _time_of_text(value, kind, per_second)
    else:
        number = _integer(value, 64)
    if kind.startswith("time("):
        if not 0 <= number < 86_400 * per_second:
            raise DoesNotFit(f"{shown(value)} is no time of a day")
    elif per_second == 1_000 and abs(number) > _MILLIS_MAX:
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


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": _boolean,
    **{f"int{bits}": partial(_integer, bits=bits) for bits in (8, 16, 32, 64)},
    **{kind: partial(_float, kind=kind) for kind in ("float32", "float64")},
    "string": _text,
    "json": json_text,
    "binary": _bytes,
    "date": _date,
    **{
        f"{kind}{unit}": partial(_time, kind=f"{kind}{unit}")
        for kind in ("timestamp", "datetime", "time")
        for unit in _PER_SECOND
    },
}
