"""Worlds in which partitions idle for longer than followers may lag, and followers pause then."""

import pytest
from verify.simulation.judging.table import events, wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.worlds.idle import draw_idle

from . import replica_mutants as mutants
from .mutants import Mutate

SECONDS = 30.0


@pytest.mark.parametrize("seed", range(1, 7))
def test_no_follower_loses_its_place_for_what_others_did_not_write(seed: int) -> None:
    """Whatever idles and pauses: who was caught up and fetched within the limit stays in sync."""
    report = simulate_seed(seed, profile=draw_idle(seed), seconds=SECONDS)
    assert report.is_good, f"{events(report)}\n{wrongs(report)}"


@pytest.mark.parametrize(
    "mutate", [mutants.idle_time_counts, mutants.idle_time_is_silence], ids=lambda m: m.__name__
)
def test_idle_worlds_find_who_counts_idle_time(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few worlds are enough."""
    mutate(monkeypatch)
    found: set[str] = set()
    for seed in range(1, 7):
        if "needless shrink" not in found:
            found |= simulate_seed(seed, profile=draw_idle(seed), seconds=SECONDS).kinds()
    assert "needless shrink" in found
