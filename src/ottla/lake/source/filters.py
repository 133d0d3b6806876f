"""Converts Spark's filters to conditions. Imported only from Spark 4.1 on."""

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

from ottla.lake.source.narrowing import Comparison, Condition

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
    """Return the filter as a condition on one of our columns; None if it has no equivalent."""
    if isinstance(pushed, Not):
        inner = condition_of(pushed.child)
        return None if inner is None else replace(inner, negated=not inner.negated)
    if isinstance(pushed, IsNotNull):
        return Condition(".".join(pushed.attribute), "not null")
    comparison = _COMPARISONS.get(type(pushed))
    if comparison is None or pushed.value is None:
        return None
    return Condition(".".join(pushed.attribute), comparison, pushed.value)
