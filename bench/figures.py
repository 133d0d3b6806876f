"""A measured figure beside what is required of it, and the table of them.

A module of measurements has `measure(scale: Scale) -> list[Figure]` and stands in
`bench.__main__.MODULES`.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

AT_LEAST, AT_MOST = "≥", "≤"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much to measure: `quick` shows that a measurement works, not what is true."""

    quick: bool = False
    rounds: int = 5

    @property
    def warm_up_rounds(self) -> int:
        return 1 if self.quick else 3

    def pick(self, full: int, quick: int) -> int:
        """A size, in the unit of its caller."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. `bound` is None where it is only reported, as for Kafka's side of a pair."""

    name: str
    value: float
    unit: str
    sense: str = AT_LEAST
    bound: float | None = None
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def met(self) -> bool | None:
        """Whether the requirement holds, or None where there is none."""
        if self.bound is None:
            return None
        return self.value >= self.bound if self.sense == AT_LEAST else self.value <= self.bound

    def row(self) -> tuple[str, str, str, str, str]:
        """Name, required, measured, verdict, note."""
        required = "" if self.bound is None else f"{self.sense} {number(self.bound)} {self.unit}"
        verdict = {True: "met", False: "SHORT", None: ""}[self.met()]
        return self.name, required, f"{number(self.value)} {self.unit}", verdict, self.note


def number(value: float) -> str:
    """Three significant digits, with thousands separated."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    """Minimum, median and maximum."""
    return (
        f"min {number(min(values))}, median {number(statistics.median(values))}, "
        f"max {number(max(values))}"
    )


def ratio(
    name: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    bound: float | None,
    *,
    sense: str = AT_LEAST,
    unit: str = "",
) -> Figure:
    """Our median over theirs; `unit` is that of the two sides."""
    value = statistics.median(ours) / statistics.median(theirs)
    note = f"Ottla {spread(ours)}; Kafka {spread(theirs)} {unit}".rstrip()
    sides = {"ottla": list(ours), "kafka": list(theirs), "unit": unit}
    return Figure(name, value, "× Kafka", sense, bound, note, sides)


def table(figures: Sequence[Figure]) -> str:
    """All figures as aligned text."""
    rows = [("figure", "required", "measured", "", "")] + [figure.row() for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip()
        for row in rows
    )


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """The figures and their details as plain values."""
    return [{**asdict(figure), "met": figure.met()} for figure in figures]
