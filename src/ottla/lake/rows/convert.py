"""Converts Python values to Arrow columns; a value that does not fit only affects its own row.

If all values have exactly the kinds that a column's type takes, Arrow makes the column in one call.
Only if that fails is it made value by value. Whether a row is good never depends on other rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.lake.model.coercion import DoesNotFit, coerced, from_text, shown
from ottla.lake.model.types import Type

Path = tuple[str, ...]

_NONE = type(None)
# Values that Arrow takes as they are, without changing or truncating any.
_TAKEN_AS_THEY_ARE: dict[str, frozenset[type]] = {
    "boolean": frozenset({bool, _NONE}),
    "int8": frozenset({int, _NONE}),
    "int16": frozenset({int, _NONE}),
    "int32": frozenset({int, _NONE}),
    "int64": frozenset({int, _NONE}),
    "float64": frozenset({float, _NONE}),
    "string": frozenset({str, _NONE}),
    "binary": frozenset({bytes, _NONE}),
    "date": frozenset({int, _NONE}),
    "timestamp(us)": frozenset({int, _NONE}),
    "datetime(us)": frozenset({int, _NONE}),
}
_TEXTS = frozenset({str, _NONE})
_CAST_FROM_TEXT = frozenset({"timestamp(ms)", "timestamp(us)", "date"})
_ARROW_REFUSES = (pa.ArrowException, OverflowError, ValueError, TypeError)
_MILLIS_MAX = (2**63 - 1) // 1000


@dataclass(slots=True)
class Findings:
    """The problems in a batch, by row (`errors`), and its new or wider fields (`news`).

    `news` has a field's path, the first row with it and the `type_of` its value. Rows in `waiting`
    have no other error than that their columns are too narrow.
    """

    errors: dict[int, str] = field(default_factory=dict)
    news: dict[Path, tuple[int, Type]] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides about fields without a column, and about values too wide for their column.

    `added(path, value)` returns the type of a column to add, or None to leave the field out; it
    raises DoesNotFit if the field makes its record a bad one. `widened(path, type, value)` returns
    the wider type that the column may take, or None.
    """

    added: Callable[[Path, Any], Type | None]
    widened: Callable[[Path, Type, Any], Type | None]
    merged: Callable[[Type, Type], Type]


IGNORE = Judge(
    added=lambda _path, _value: None,
    widened=lambda _path, _type, _value: None,
    merged=lambda first, _second: first,
)


class Converter:
    """Makes the columns of one batch. `texts`: the values are from CSV, all of them texts."""

    def __init__(
        self, judge: Judge = IGNORE, *, texts: bool = False, base64_decimals: bool = False
    ) -> None:
        self._judge = judge
        self._texts = texts
        self._base64_decimals = base64_decimals
        self.findings = Findings()

    def column(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        """Return an array of `wanted`, null where a value does not fit.

        `rows` has the row in the batch of each value.
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
        """Make a row a bad one; only the first error of a row is kept."""
        self.findings.errors.setdefault(row, f"{'.'.join(path)}: {why}" if path else why)

    def unknown(self, values: Sequence[Any], known: frozenset[str], path: Path, rows: Any) -> None:
        """Look for fields that have no column."""
        for value, row in zip(values, rows, strict=True):
            if value is not None and not known >= value.keys():
                for name in value:  # In the record's order, which decides the order of new columns.
                    if name not in known:
                        self.found(row, (*path, name), value[name])

    def found(self, row: int, path: Path, value: Any) -> None:
        """Note a field that has no column."""
        try:
            found = self._judge.added(path, value)
        except DoesNotFit as error:
            self.refuse(row, path, str(error))
            return
        if found is not None:
            self._new(row, path, found)

    def _new(self, row: int, path: Path, found: Type) -> None:
        first, before = self.findings.news.get(path, (row, found))
        self.findings.news[path] = (min(first, row), self._judge.merged(before, found))

    def _of_kind(
        self, values: Sequence[Any], kind: type, what: str, path: Path, rows: Sequence[int]
    ) -> list[Any]:
        """Return the values, with None for each that is not of the Python type `kind`."""
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
        known = frozenset(name for name, _ in wanted.fields)
        self.unknown(kept, known, path, rows)
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
        flat_rows = [
            row for value, row in zip(kept, rows, strict=True) if value is not None for _ in value
        ]
        inner = self.column(flat, wanted.element, (*path, "[]"), flat_rows)
        return pa.ListArray.from_arrays(_offsets(kept), inner, type=wanted.arrow)

    def _map(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        kept = self._of_kind(values, dict, "object", path, rows)
        pairs = [pair for value in kept if value is not None for pair in value.items()]
        flat_rows = [
            row for value, row in zip(kept, rows, strict=True) if value is not None for _ in value
        ]
        keys = self._plain([key for key, _ in pairs], Type("string"), (*path, "{}"), flat_rows)
        # The row is refused, but Arrow's maps allow no null keys.
        keys = pc.fill_null(keys, "")
        inner = self.column([one for _, one in pairs], wanted.element, (*path, "{}"), flat_rows)
        return pa.MapArray.from_arrays(_offsets(kept), keys, inner, type=wanted.arrow)

    def _plain(self, values: Sequence[Any], wanted: Type, path: Path, rows: Sequence[int]) -> Any:
        if not self._texts:
            quick = _quickly(values, wanted)
            if quick is not None:
                return quick
        elif wanted.kind != "json":
            try:
                return _in_range(pa.array(values, pa.string()).cast(wanted.arrow), wanted)
            except _ARROW_REFUSES:
                pass
        found = []
        for value, row in zip(values, rows, strict=True):
            try:
                found.append(None if value is None else self._one(value, wanted))
            except DoesNotFit as error:
                found.append(None)
                wider = self._judge.widened(path, wanted, value)
                if wider is None:
                    self.refuse(row, path, str(error))
                else:
                    self.findings.waiting.add(row)
                    self._new(row, path, wider)
        return pa.array(found, wanted.arrow)

    def _one(self, value: Any, wanted: Type) -> Any:
        if self._texts:
            one = from_text(value, wanted)
            if isinstance(one, datetime | date | time) or wanted.kind.endswith("(ms)"):
                _in_range(pa.array([one], wanted.arrow), wanted)
            return one
        return coerced(value, wanted, base64_decimals=self._base64_decimals)


def _quickly(values: Sequence[Any], wanted: Type) -> Any:
    """Return the column from one call to Arrow; None if values must be checked one by one."""
    kinds = {type(value) for value in values}
    try:
        if kinds <= _TAKEN_AS_THEY_ARE.get(wanted.kind, frozenset()):
            return pa.array(values, wanted.arrow)
        if wanted.kind in _CAST_FROM_TEXT and kinds <= _TEXTS:
            return _in_range(pa.array(values, pa.string()).cast(wanted.arrow), wanted)
        if wanted.kind == "decimal" and kinds <= {Decimal, _NONE}:
            return pa.array(values, wanted.arrow)
    except _ARROW_REFUSES:
        pass
    return None


def _in_range(column: Any, wanted: Type) -> Any:
    """Return the column if Spark can hold its times. Raises ValueError."""
    if wanted.kind in {"timestamp(ms)", "datetime(ms)"}:
        extremes = pc.min_max(column.cast(pa.int64()))
        for which in ("min", "max"):
            if abs(extremes[which].as_py() or 0) > _MILLIS_MAX:
                raise ValueError("a time that no timestamp of Spark can hold")
    return column


def _offsets(kept: Sequence[Any]) -> Any:
    """Return the start of each list among all elements; null for a list that is null."""
    ends = list(accumulate((0 if value is None else len(value) for value in kept), initial=0))
    mask = [value is None for value in kept] + [False]
    return pa.array(
        [None if null else end for end, null in zip(ends, mask, strict=True)], pa.int32()
    )
