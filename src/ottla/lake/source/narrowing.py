"""Narrows the partitions and offsets of a query by conditions on its columns. Pure.

If a condition can be decided for whole ranges of offsets, it is applied completely here. Other
conditions only narrow the ranges, and Spark still applies them to each row.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Comparison = Literal["=", "<", "<=", ">", ">=", "in", "not null"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOLDS: Mapping[Comparison, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda found, values: found in values,
    "not null": lambda _found, _value: True,
}
# Spark's filters by class name, since older versions of Spark than 4.1 lack the classes.
_FILTERS: Mapping[str, Comparison] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "in",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """`column comparison value`, or its opposite if `negated`."""

    column: str
    comparison: Comparison
    value: Any = None
    negated: bool = False

    def holds(self, found: Any) -> bool:
        """Return whether the condition is true for a value that is not null."""
        return _HOLDS[self.comparison](found, self.value) is not self.negated


def condition_of(pushed: Any) -> Condition | None:
    """Convert Spark's filter to a condition on a column; None if it has no equivalent."""
    kind = type(pushed).__name__
    if kind == "Not":
        inner = condition_of(pushed.child)
        return None if inner is None else replace(inner, negated=not inner.negated)
    if kind == "IsNotNull":
        return Condition(".".join(pushed.attribute), "not null")
    comparison = _FILTERS.get(kind)
    if comparison is None or pushed.value is None:
        return None
    return Condition(".".join(pushed.attribute), comparison, pushed.value)


@dataclass(slots=True)
class Narrowing:
    """The combined conditions of a query, which limit partitions, offsets and times."""

    _on_partitions: list[Condition] = field(default_factory=list)
    _offset_min: int = 0
    _offset_end: int = 1 << 63  # Only offsets below this are read.
    since_ms: int | None = None  # Only records from the first one at or after this time are read.

    def takes(self, condition: Condition) -> bool:
        """Apply the condition. Return False if rows that it excludes may still be read."""
        if condition.comparison == "not null":
            return not condition.negated and condition.column in ("topic", "partition", "offset")
        match condition.column:
            case "partition" | "topic" as column:
                if _of_type(condition, int if column == "partition" else str):
                    self._on_partitions.append(condition)
                    return True
            case "offset" if _of_type(condition, int) and not condition.negated:
                return self._takes_offset(condition)
            case "timestamp" if _of_type(condition, datetime) and not condition.negated:
                self._takes_time(condition)
        return False

    def _takes_offset(self, condition: Condition) -> bool:
        value = condition.value
        match condition.comparison:
            case "=":
                low, end = value, value + 1
            case ">":
                low, end = value + 1, self._offset_end
            case ">=":
                low, end = value, self._offset_end
            case "<":
                low, end = 0, value
            case "<=":
                low, end = 0, value + 1
            case _:
                low, end = min(value, default=0), max(value, default=-1) + 1
        self._offset_min = max(self._offset_min, low)
        self._offset_end = min(self._offset_end, end)
        return condition.comparison != "in"

    def _takes_time(self, condition: Condition) -> None:
        values = condition.value if condition.comparison == "in" else [condition.value]
        if condition.comparison in ("=", ">", ">=", "in") and values:
            since_ms = min(map(_ms, values))
            self.since_ms = since_ms if self.since_ms is None else max(self.since_ms, since_ms)

    def keeps(self, topic: str, partition: int) -> bool:
        """Return whether the conditions allow rows of the partition."""
        return all(
            condition.holds(topic if condition.column == "topic" else partition)
            for condition in self._on_partitions
        )

    def narrowed(
        self,
        topic: str,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        since: Mapping[int, int],
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return the narrowed starts and ends; they are equal for a partition that is not read.

        `since` has the first offset of each partition at or after `since_ms`, if there is one.
        """
        kept_starts, kept_ends = {}, {}
        for partition, start in starts.items():
            end = ends[partition]
            kept_starts[partition] = kept_ends[partition] = start
            if not self.keeps(topic, partition):
                continue
            first = start if self.since_ms is None else max(start, since.get(partition, end))
            first = max(first, self._offset_min)
            last = min(end, self._offset_end)
            if first < last:
                kept_starts[partition], kept_ends[partition] = first, last
        return kept_starts, kept_ends


def _ms(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded down; a time without a zone is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def _of_type(condition: Condition, kind: type) -> bool:
    values: Sequence[Any] = condition.value if condition.comparison == "in" else [condition.value]
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)
