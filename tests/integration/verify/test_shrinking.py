"""Shrinking keeps what is needed for the wrong, and nothing else."""

from verify.simulation.decisions import Choice, ChoiceSource, from_json, to_json
from verify.simulation.shrinking import Shrinker

MANY = [Choice(number * 100, "kill", number % 3, 50, 1_000) for number in range(40)]


def test_two_that_are_needed_together_are_left() -> None:
    def fails(decisions: list[Choice]) -> bool:
        return {700, 2_900} <= {decision.at_ms for decision in decisions}

    small = Shrinker(fails).shrink(MANY)
    assert [decision.at_ms for decision in small] == [700, 2_900]


def test_numbers_become_simple_where_they_may() -> None:
    def fails(decisions: list[Choice]) -> bool:
        return any(decision.subject == 2 for decision in decisions)

    (decision,) = Shrinker(fails).shrink(MANY)
    assert decision == Choice(decision.at_ms, "kill", 2, 0, 250)


def test_attempts_are_limited() -> None:
    tried: list[int] = []

    def fails(decisions: list[Choice]) -> bool:
        tried.append(len(decisions))
        return len(decisions) > 30

    small = Shrinker(fails, attempts_max=10).shrink(MANY)
    assert len(tried) == 10
    assert len(small) > 30


def test_decisions_are_drawn_from_the_seed_alone() -> None:
    def drawn(seed: int) -> list[Choice]:
        weights = {"kill": 1, "power": 3, "pause": 0}
        source = ChoiceSource(seed)
        return source.decisions(weights, until_ms=30_000, mean_interval_ms=500)

    assert drawn(1) == drawn(1) != drawn(2)
    assert {decision.kind for decision in drawn(1)} == {"kill", "power"}
    assert drawn(1) == sorted(drawn(1))


def test_written_decisions_are_said_again() -> None:
    again = from_json(to_json(MANY))
    source = ChoiceSource(99, again)
    assert source.decisions({}, until_ms=0, mean_interval_ms=1) == MANY
