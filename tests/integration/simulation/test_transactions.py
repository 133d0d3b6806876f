"""Copying exactly once while programs and brokers die: seeds hold, and broken rules are found."""

from dataclasses import replace

import pytest
from verify.simulation.decisions import Choice
from verify.simulation.judging.report import Report
from verify.simulation.judging.table import events, wrongs
from verify.simulation.run import simulate_seed
from verify.simulation.worlds.aimed import AIMED_SEED_S, draw_aimed
from verify.simulation.worlds.exact import draw_exact
from verify.simulation.worlds.profile import Profile, draw

from . import transaction_mutants as mutants
from .mutants import Mutate

SECONDS = 10


def _small() -> Profile:
    """One broker and two copiers of two partitions, with much to do."""
    return replace(
        draw(1, 1),
        partitions=2,
        flush_policy="group",
        segment_ms=7 * 86_400_000,
        fragmentation=0.0,
        session_ms=3_000,
        producers=1,
        readers=0,
        members=0,
        hasty_producers=0,
        send_every_ms=100,
        record_bytes_max=30,
        ends_every_ms=2_000,
        copiers=2,
        transaction_ms=3_000,
        late_requests=True,
        poll_ms=200,
        idle_ms=50,
    )


def _often(kind: str, every_ms: int, for_ms: int, amount: int = 0) -> list[Choice]:
    return [
        Choice(at_ms, kind, number, amount, for_ms)
        for number, at_ms in enumerate(range(1_000, SECONDS * 1_000 - 500, every_ms))
    ]


SLOW = _often("slow_disk", 1_000, 900, 20)
CASES = {
    mutants.aborted_are_not_named: [],
    mutants.stable_offset_is_ignored: [],
    mutants.offsets_count_before_the_marker: [*SLOW, *_often("kill_copier", 300, 100)],
    mutants.nothing_is_verified: [],
}


def _run(decisions: list[Choice]) -> Report:
    return simulate_seed(1, seconds=SECONDS, profile=_small(), decisions=decisions)


@pytest.mark.parametrize("seed", [2, 3, 7, 11])
def test_every_record_is_copied_once(seed: int) -> None:
    """Whatever dies, stands still or is doubled; nothing aborted is read, nothing is torn."""
    report = simulate_seed(seed, seconds=15, profile=draw_exact(seed))
    assert report.is_good, f"{events(report)}\n{wrongs(report)}"
    assert report.sometimes["transaction committed"] > 0


@pytest.mark.parametrize("mutate", CASES, ids=lambda mutate: mutate.__name__)
def test_broken_rule_is_found(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the very troubles in which the rule holds, its absence shows."""
    decisions = CASES[mutate]
    report = _run(decisions)
    assert report.is_good, f"{events(report)}\n{wrongs(report)}"
    mutate(monkeypatch)
    assert not _run(decisions).is_good


@pytest.mark.parametrize(
    ("mutate", "seed"),
    [(mutants.decided_is_forgotten, 1), (mutants.nobody_is_fenced, 6)],
    ids=lambda each: str(getattr(each, "__name__", each)),
)
def test_broken_rule_is_found_where_troubles_wait_for_decisions(
    mutate: Mutate, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By chance nothing dies within the milliseconds in which these rules matter."""

    def run() -> Report:
        return simulate_seed(seed, seconds=AIMED_SEED_S, profile=draw_aimed(seed))

    report = run()
    assert report.is_good, f"{events(report)}\n{wrongs(report)}"
    mutate(monkeypatch)
    assert not run().is_good
