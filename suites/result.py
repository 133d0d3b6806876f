"""What one test of a suite came to, on one side."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """As the suite itself says it; `MISSING` is a test that this side's run never reached."""

    PASS = "pass"
    FAIL = "FAIL"
    SKIP = "skip"
    MISSING = "not run"


@dataclass(frozen=True, slots=True)
class Result:
    """One test. `reason` is the cause of a failure or a skip, in the suite's own words."""

    test: str
    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One test on both sides."""

    test: str
    ottla: Result
    kafka: Result

    @property
    def differs(self) -> bool:
        return self.ottla.outcome != self.kafka.outcome


def side_by_side(ottla: list[Result], kafka: list[Result]) -> list[Row]:
    """One row for each test of either list, in the order of the first that names it."""
    left = {result.test: result for result in ottla}
    right = {result.test: result for result in kafka}
    return [
        Row(
            name,
            left.get(name, Result(name, Outcome.MISSING)),
            right.get(name, Result(name, Outcome.MISSING)),
        )
        for name in {**left, **right}
    ]
