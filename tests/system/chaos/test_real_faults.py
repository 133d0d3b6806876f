"""Real brokers killed, stopped, cut off and without power: nothing acknowledged is lost."""

from pathlib import Path

import pytest
from chaos import disks, hosts
from chaos.commands import missing
from chaos.outcome import Outcome, Plan
from chaos.run import run
from rig import zookeeper

pytestmark = pytest.mark.timeout(800)
# More than two sessions of three seconds; other faults end sooner of themselves.
AWAY_S = 8.0


def broken(plan: Plan, folder: Path) -> Outcome:
    """What a run shows; skipped where namespaces and disks cannot be made."""
    if reason := missing((*hosts.TOOLS, *disks.TOOLS)):
        pytest.skip(reason)
    outcome = Outcome(plan)
    run(plan, folder, lambda told: None, outcome)
    return outcome


def require_all_kept(outcome: Outcome) -> None:
    """0 lost, 0 doubled, 0 told differently; replicas are the same bytes."""
    assert outcome.is_good, outcome.table()
    assert outcome.unexpected == []
    # The laws hold of something: each writer was answered between faults.
    assert outcome.verdict.records_acknowledged > 1000


def test_killed_stopped_cut_off_and_without_power_on_sqlite(tmp_path):
    """5 kills (one of all brokers), 2 stops, 2 partitions, 2 power cuts: 0 lost, 0 duplicates.

    And a store that answers nobody for longer than a session (S33).
    """
    faults = [
        *("kill", "stop", "power", "kill", "partition", "kill"),
        *("one-way", "kill", "power", "stop", "store-away", "kill-all"),
    ]
    plan = Plan(faults, cycles=1, seed=1, rate=200, broken_at_most_s=AWAY_S)
    outcome = broken(plan, tmp_path)
    assert outcome.made == {
        "kill": 4,
        "kill-all": 1,
        "stop": 2,
        "partition": 1,
        "one-way": 1,
        "power": 2,
        "store-away": 1,
    }
    require_all_kept(outcome)


def test_killed_stopped_cut_off_and_without_power_on_zookeeper(tmp_path):
    """The same over a real ZooKeeper, on a host of its own; all brokers at once, too."""
    if reason := zookeeper.available():
        pytest.skip(reason)
    faults = [
        *("kill", "kill-all", "partition", "stop", "store-away", "kill-all"),
        *("power", "store-restart", "power-all", "stop-all"),
    ]
    plan = Plan(faults, cycles=1, seed=2, rate=200, store="zookeeper", broken_at_most_s=AWAY_S)
    outcome = broken(plan, tmp_path)
    assert outcome.made == {
        "kill": 1,
        "kill-all": 2,
        "partition": 1,
        "stop": 1,
        "stop-all": 1,
        "power": 1,
        "power-all": 1,
        "store-away": 1,
        "store-restart": 1,
    }
    require_all_kept(outcome)
