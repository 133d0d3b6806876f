"""Spark's filters as conditions. Spark 4.1 has them: imported only where Spark pushes filters."""

from dataclasses import replace

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from ottla.lake.stream.narrowing import Comparison, Condition

_COMPARISONS: dict[type, Comparison] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    In: "in",
}


def condition_of(pushed: Filter) -> Condition | None:
    """The filter as a condition on one of our columns; None where there is no word for it."""
    if isinstance(pushed, Not):
        inner = condition_of(pushed.child)
        return None if inner is None else replace(inner, negated=not inner.negated)
    if isinstance(pushed, IsNotNull):
        return Condition(".".join(pushed.attribute), "not null")
    comparison = _COMPARISONS.get(type(pushed))
    if comparison is None or pushed.value is None:
        return None
    return Condition(".".join(pushed.attribute), comparison, pushed.value)
