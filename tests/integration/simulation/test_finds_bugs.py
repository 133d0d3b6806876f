"""The simulator finds what is planted: each of these bugs breaks a law within a few seeds."""

from collections.abc import Callable
from typing import Any

import pytest
from verify.simulation.decisions import Choice
from verify.simulation.judging.report import Report
from verify.simulation.run import simulate_seed
from verify.simulation.shrinking import Shrinker
from verify.simulation.worlds.profile import draw
from verify.simulation.worlds.secure import draw_secure

from ottla.broker.partitions.partition import Partition
from ottla.client.consumer.partition_state import PartitionState
from ottla.client.consumer.positions import Positions
from ottla.storage.producers.state import ProducerStates

# Power cuts while the disk is behind, and connections that break.
TROUBLE = [
    *(Choice(at_ms, "power", 0, 0, 500) for at_ms in range(1_000, 10_000, 1_500)),
    *(Choice(at_ms, "drop", at_ms, 0, 0) for at_ms in range(1_100, 10_000, 300)),
]


def _run(seed: int, decisions: list[Choice] = TROUBLE) -> Report:
    return simulate_seed(seed, seconds=10, profile=draw(seed, 1), decisions=decisions)


def _names(*seeds: int) -> set[str]:
    return {name for seed in seeds for name in _run(seed).kinds()}


def _answer_at_once(self: Partition, _offset: int, callback: Callable[[Any], None]) -> None:
    self.flush_soon()
    callback(0)


def test_nothing_is_found_where_nothing_is_planted() -> None:
    assert _names(1, 2, 3) == set()


def test_acknowledging_before_the_flush_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is told before the disk has it loses it when the power goes."""
    monkeypatch.setattr(Partition, "on_high_watermark", _answer_at_once)
    assert _names(1, 2, 3) & {"lost-write", "inconsistent-offsets"}


def test_forgetting_producers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not know a retry writes it twice."""
    monkeypatch.setattr(ProducerStates, "check", lambda _self, _header: None)
    assert "duplicate" in _names(1, 2, 3)


def _leaders_die_while_nobody_hears_them() -> list[Choice]:
    decisions: list[Choice] = []
    for at_ms in range(1_000, 9_000, 2_000):
        decisions += [Choice(at_ms, "split", subject, 0, 700) for subject in range(3)]
        decisions.append(Choice(at_ms + 500, "kill_leader", 0, 0, 900))
    return decisions


def _with_three(seed: int) -> set[str]:
    decisions = _leaders_die_while_nobody_hears_them()
    return simulate_seed(seed, seconds=10, profile=draw(seed, 3), decisions=decisions).kinds()


def test_acknowledging_before_followers_have_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three brokers: who is told before the in-sync replicas have it loses it with the leader."""
    assert _with_three(1) | _with_three(2) == set()
    monkeypatch.setattr(Partition, "on_high_watermark", _answer_at_once)
    found = _with_three(1) | _with_three(2)
    assert found & {"lost-write", "inconsistent-offsets"}


def _check_late(self: Positions, leader: int, states: list[PartitionState]) -> None:
    for state in states:
        state.is_checking = True

    async def begin() -> None:
        for state in states:
            state.is_checking = False
        _CHECK(self, leader, states)

    self._waiting.run(begin())


_CHECK = Positions.check


def test_a_check_of_the_leader_epoch_that_begins_late_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reader that seeks before it begins reads from the log's start again."""
    decisions = [
        Choice(3_079, "pause", 0, 0, 1_620),
        Choice(8_331, "power", 0, 0, 160),
        Choice(21_975, "kill", 0, 0, 96),
        Choice(26_197, "bit_flip", 0, 23, 1_640),
    ]

    def found() -> set[str]:
        report = simulate_seed(3280, seconds=30, profile=draw_secure(3280), decisions=decisions)
        return report.kinds()

    assert found() == set()
    monkeypatch.setattr(Positions, "check", _check_late)
    assert found() == {"nonmonotonic-poll"}


def test_failing_run_shrinks_to_one_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of six power cuts among broken connections one is enough, and that is what is left."""
    monkeypatch.setattr(Partition, "on_high_watermark", _answer_at_once)
    seed = next(seed for seed in range(1, 20) if not _run(seed).is_good)
    kinds = _run(seed).kinds()

    def fails(decisions: list[Choice]) -> bool:
        return bool(kinds & _run(seed, decisions).kinds())

    small = Shrinker(fails, attempts_max=40).shrink(TROUBLE)
    assert [decision.kind for decision in small] == ["power"]
