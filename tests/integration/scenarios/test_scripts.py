"""Each known way to lose records ends well, and ends badly where its bug is put back."""

import pytest
from verify.walk.mutants import MUTANTS
from verify.walk.violation import Violation
from verify.walk.world import SHIPPED

from .scripts import SCRIPTS, Script
from .walking import walk_on

PAIRS = [(script, name) for script, names in SCRIPTS.items() for name in names]


def named(part: Script | str) -> str:
    return part if isinstance(part, str) else part.__name__


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_the_safe_result_holds(script: Script) -> None:
    """The shipped cores lose nothing (P20, P21, P23, P24)."""
    script(SHIPPED)


@pytest.mark.parametrize(("script", "name"), PAIRS, ids=named)
def test_the_old_behaviour_fails(script: Script, name: str) -> None:
    """With the bug put back the same script finds the loss: it checks something."""
    with pytest.raises(Violation):
        script(MUTANTS[name])


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_whatever_comes_after_it_ends_well(script: Script) -> None:
    """The world it leaves walks on by chance and heals (`__main__` tries 1,000 seeds)."""
    for seed in (1, 2, 3):
        walk_on(script, seed)


def test_every_mutant_has_a_script() -> None:
    """Chance finds some bugs late; a script finds each at once."""
    assert sorted(set(MUTANTS) - {name for _, name in PAIRS}) == []
