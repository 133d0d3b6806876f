"""The comparison of in-sync replicas and majorities: what it counts, and what it models."""

from dataclasses import replace

import pytest
from verify.quorums.failures import Tolerated, of_in_sync, of_majority
from verify.quorums.model import Model, Scene

CALM = Scene("calm")


@pytest.mark.parametrize(
    ("copies", "min_isr", "in_sync", "majority"),
    [
        (2, 1, Tolerated(writes=1, leader=1, copies_lost=0), Tolerated(0, 0, 1)),
        (3, 2, Tolerated(writes=1, leader=2, copies_lost=1), Tolerated(1, 1, 1)),
        (4, 2, Tolerated(writes=2, leader=3, copies_lost=1), Tolerated(1, 1, 2)),
        (5, 3, Tolerated(writes=2, leader=4, copies_lost=2), Tolerated(2, 2, 2)),
    ],
)
def test_failures_are_tolerated_as_the_papers_say(
    copies: int, min_isr: int, in_sync: Tolerated, majority: Tolerated
) -> None:
    """f + 1 in-sync replicas keep a leader through f failures; a majority needs 2f + 1."""
    assert of_in_sync(copies, min_isr) == in_sync
    assert of_majority(copies) == majority


def test_a_majority_never_waits_longer_than_all_in_sync() -> None:
    """Record by record: who waits for all waits for the majority among them."""
    outcome = Model(replace(CALM, hiccup_ms=50.0), seed=3).run(2000)
    assert len(outcome.in_sync) == len(outcome.majority) == 2000
    assert all(most <= every for most, every in zip(outcome.majority, outcome.in_sync, strict=True))


def test_a_follower_that_stands_still_for_good_costs_its_session() -> None:
    """The ISR waits for the session's end and no longer; the majority waits for nobody."""
    scene = replace(CALM, still_at_ms=1000.0, still_ms=1e9)
    outcome = Model(scene, seed=3).run(3000)
    assert 2900.0 < max(outcome.in_sync) < 3100.0
    assert max(outcome.majority) < 100.0
    # What came after the follower was taken out waits for two replicas only.
    assert max(outcome.in_sync[2500:]) < 100.0


def test_the_same_seed_gives_the_same_figures() -> None:
    """Figures in documents can be made again."""
    first, second = (Model(CALM, seed=7).run(500) for _ in range(2))
    assert first == second
    assert Model(CALM, seed=8).run(500) != first
