"""What went wrong elsewhere (S21 to S28), step by step; and again where a rule is broken."""

import pytest

from ottla.base.errors import OttlaError

from .mutants import Mutate
from .scripts import MUTANTS, SCRIPTS, AnyStory, tell

PAIRS = [(story, mutate) for story, mutants in SCRIPTS.items() for mutate in mutants]
# Found by seeds instead: see test_transactions.
BY_CHANCE = {"aborted_are_not_named", "stable_offset_is_ignored"}


@pytest.mark.parametrize("story", SCRIPTS, ids=lambda story: story.__name__)
def test_what_went_wrong_elsewhere_goes_well(story: AnyStory) -> None:
    """In the order of events in which it once failed."""
    tell(story)


@pytest.mark.parametrize(("story", "mutate"), PAIRS, ids=lambda each: each.__name__)
def test_it_goes_wrong_where_the_rule_is_broken(
    story: AnyStory, mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is that rule which the script puts to the test."""
    mutate(monkeypatch)
    with pytest.raises((AssertionError, OttlaError, TimeoutError, pytest.fail.Exception)):
        tell(story)


def test_every_scenario_has_a_mutant_and_every_mutant_a_script() -> None:
    """A scenario that nothing fails tests nothing, a mutant that fails nothing finds nothing."""
    told = {story.__name__[:3] for story, mutants in SCRIPTS.items() if mutants}
    assert {f"s{number}" for number in range(21, 29)} <= told
    scripted = {mutate.__name__ for _, mutate in PAIRS}
    assert {mutate.__name__ for mutate in MUTANTS} - scripted == BY_CHANCE
