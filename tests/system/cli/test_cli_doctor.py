"""`ottla doctor`, `ottla whatif` and `ottla cluster ready`, at a cluster and where none is."""

import json
from collections.abc import Iterator

import pytest
from rig.probe import free_port

from tests.system.cli.command_here import CommandHere
from tests.system.cli.threaded_cluster import ThreadedCluster

SETTINGS = {"min.insync.replicas": "2", "default.replication.factor": "3"}


@pytest.fixture(scope="module")
def ask() -> Iterator[CommandHere]:
    with ThreadedCluster(SETTINGS) as running:
        yield CommandHere(running.bootstrap)


def test_a_doctor_who_finds_nothing_says_what_was_examined(ask: CommandHere) -> None:
    """For people and for programs; the exit code is 0."""
    lines = ask("doctor").lines
    assert "all is well" in lines
    assert any(line.startswith("addresses     3 of 3 that brokers adv") for line in lines)
    answer = ask("doctor", "-o", "json").json
    assert (answer["well"], answer["findings"]) == (True, [])
    areas = {one["area"] for one in answer["checked"]}
    assert areas >= {"addresses", "clocks", "disks", "settings", "versions"}


def test_a_doctor_who_finds_something_exits_with_1() -> None:
    """Nothing listens there: cause and remedy, as text and as JSON."""
    nowhere = CommandHere(f"localhost:{free_port()}")
    answer = nowhere.try_to("doctor")
    assert answer.code == 1
    assert answer.out.startswith("error: connection fails\n  why   nothing listens at localhost:")
    assert "\n  do    start the broker, or correct the port; " in answer.out
    (found,) = json.loads(nowhere.try_to("doctor", "-o", "json").out)["findings"]
    assert (found["severity"], found["area"]) == ("error", "addresses")


def test_predictions_name_partitions_leaders_and_the_next_loss(ask: CommandHere) -> None:
    """A partition with all three replicas loses one, and one with a single replica all."""
    ask("topic", "create", "whole", "-p", "3", "-r", "3")
    ask("topic", "create", "thin", "-p", "3", "-r", "1", "-s", "min.insync.replicas=1")
    answer = ask("whatif", "stop-broker", "2", "-o", "json").json
    (offline,) = answer["offline"]
    assert offline.startswith("thin-")
    moved = {one["partition"]: one["after"] for one in answer["leaders"] if one["before"] == 2}
    assert len(moved) == 2
    assert moved[offline] == -1
    assert {1, 3} >= {after for name, after in moved.items() if name.startswith("whole-")}
    assert [row["broker"] for row in answer["next"]] == [1, 3]
    told = ask("whatif", "stop-broker", "2").out
    assert f"offline: neither read nor written (1)\n  where {offline}\n" in told
    assert "if broker 1 stops after that, 4 partitions can no longer be written" in told
    changed = ask("whatif", "set", "min.insync.replicas=3", "--topic", "whole").out
    assert "nothing becomes offline or read-only, and no leader moves" in changed
    grown = ask("whatif", "add-brokers", "1")
    assert "partitions would move" in grown.out
    assert [line.split()[0] for line in grown.lines[:5]] == ["broker", "1", "2", "3", "4"]


def test_a_prediction_of_what_is_not_there_is_refused(ask: CommandHere) -> None:
    """Brokers, racks and settings by other names."""
    assert "broker 9 is not alive; there are [1, 2, 3]" in ask.refused("whatif", "stop-broker", "9")
    assert "set broker.rack on the brokers" in ask.refused("whatif", "lose-rack", "a")
    assert "only min.insync.replicas=N can be predicted" in ask.misused("whatif", "set", "a=1")


def test_a_cluster_is_ready_when_every_broker_has_proven_itself(ask: CommandHere) -> None:
    """Each with the brokers that have its record; without the fourth the exit code is 1."""
    assert ask("cluster", "ready").lines == [
        "broker 1: ready",
        "broker 2: ready",
        "broker 3: ready",
    ]
    lines = ask("cluster", "ready", "--prove", "--brokers", "3").lines
    assert [line.split(" in ")[0] for line in lines] == [
        "broker 1: ready: written to 1, 2, 3",
        "broker 2: ready: written to 2, 3, 1",
        "broker 3: ready: written to 3, 1, 2",
    ]
    told = ask.refused("cluster", "ready", "--brokers", "4", "--timeout", "1s")
    assert "3 of 4 brokers are alive: [1, 2, 3]; start the others" in told
