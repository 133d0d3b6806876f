"""Commands about brokers and partitions, with three brokers, some of which die."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command
from tests.system.cli.threaded_cluster import ThreadedCluster

SETTINGS = {"min.insync.replicas": "2", "auto.leader.rebalance.enable": "false"}


@pytest.fixture
def brokers() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(SETTINGS) as running:
        yield running


@pytest.fixture
def ask(brokers: ThreadedCluster) -> Command:
    return CommandHere(brokers.bootstrap)


def shares(ask: Command) -> list[tuple[int, int]]:
    """How many partitions each broker leads and follows, as one of them sees it."""
    rows = ask("cluster", "describe", "-o", "json").json["brokers"]
    return [(row["leads"], row["follows"]) for row in rows]


def until(condition: Callable[[], bool]) -> None:
    """Wait for `condition`: any broker may be asked, and each hears of a change in its time."""
    deadline_s = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_healthy_cluster_is_described(brokers: ThreadedCluster, ask: Command) -> None:
    """Brokers with what they lead and follow; health is one line and exit code 0."""
    brokers.create_topic("t", [1, 2, 3], [2, 3, 1], [1, 3, 2])
    told = ask("cluster", "describe", "-o", "json").json
    assert told["controller"] == brokers.controller_id
    assert [(row["broker"], row["leads"], row["follows"]) for row in told["brokers"]] == [
        (1, 2, 1),
        (2, 1, 2),
        (3, 0, 3),
    ]
    lines = ask("cluster", "describe").lines
    assert lines[1].split() == [
        *("broker", "address", "rack", "state", "leads", "follows", "not", "in", "sync")
    ]
    numbers = "0 under-replicated, 0 offline, 0 under min ISR, 0 at min ISR"
    assert lines[-1] == f"3 partitions: {numbers}"
    assert ask("cluster", "health").lines == ["all is well", f"3 partitions: {numbers}"]
    assert ask("cluster", "health", "-o", "json").json["healthy"] is True
    found = ask("cluster", "controller", "-o", "json").json
    assert ask("cluster", "controller").out == (
        f"broker {found['controller']} at {found['address']}\n"
    )


def test_health_tells_what_a_dead_broker_costs(brokers: ThreadedCluster, ask: Command) -> None:
    """Causes and remedies; conditions list the partitions; all is well when it is back."""
    brokers.create_topic("t", [3, 1, 2])
    brokers.create_topic("pair", [3, 1])
    brokers.create_topic("lone", [3])
    brokers.kill(3)
    brokers.until_state(lambda state: 3 not in state.isr, "t")
    brokers.until_state(lambda state: 3 not in state.isr, "pair")
    brokers.until_state(lambda state: state.leader == -1, "lone")
    answer = ask.try_to("cluster", "health", "-o", "json")
    assert answer.code == 1
    told = answer.json
    assert (told["healthy"], told["brokers"], told["partition_count"]) == (False, [1, 2], 3)
    numbers = ("under_replicated", "offline", "under_min_isr", "at_min_isr")
    assert [told[name] for name in numbers] == [3, 1, 2, 1]
    found = {row["trouble"]: row for row in told["findings"]}
    assert found["offline"]["partitions"] == ["lone-0"]
    assert found["offline"]["cause"] == (
        "broker 3 is down, and no other broker has all acknowledged records"
    )
    assert found["offline"]["remedy"] == "start broker 3"
    assert found["under min ISR"]["partitions"] == ["pair-0"]
    assert found["at min ISR"]["partitions"] == ["t-0"]
    assert found["at min ISR"]["remedy"].endswith("2 alive cannot hold 3 replicas")
    listed = ask("topic", "describe", "--under-replicated", "-o", "json").json
    assert [row["partition"] for row in listed] == ["lone-0", "pair-0", "t-0"]
    assert ask("topic", "describe", "--unavailable").lines[1].split()[0] == "lone-0"
    assert ask("topic", "describe", "t", "--under-min-isr", "-o", "json").json == []
    assert "name a topic" in ask.misused("topic", "describe")
    row = ask("cluster", "describe", "-o", "json").json["brokers"][2]
    assert (row["broker"], row["state"], row["address"]) == (3, "down", None)
    brokers.restart(3)
    for topic, size in (("t", 3), ("pair", 2)):
        brokers.until_state(lambda state, size=size: len(state.isr) == size, topic)
    brokers.until_state(lambda state: state.leader == 3, "lone")
    assert ask("cluster", "health").lines[0] == "all is well"


def test_internal_topics_that_have_few_replicas_are_told(
    brokers: ThreadedCluster, ask: Command, tmp_path: Path
) -> None:
    """Made before the other brokers came, say; the remedy helps."""
    brokers.create_topic("__consumer_offsets", [1], [2], settings={"min.insync.replicas": "1"})
    answer = ask.try_to("cluster", "health", "-o", "json")
    assert answer.code == 1
    (finding,) = answer.json["findings"]
    assert finding["trouble"] == "too few replicas"
    assert finding["partitions"] == ["__consumer_offsets-0", "__consumer_offsets-1"]
    assert "partition plan __consumer_offsets --replicas 3 -o json" in finding["remedy"]
    plan = ask("partition", "plan", "__consumer_offsets", "--replicas", "3", "-o", "json").out
    file = tmp_path / "plan.json"
    file.write_text(plan)
    ask("partition", "reassign", "--plan", str(file), "--wait", "--yes")
    until(lambda: ask.try_to("cluster", "health").lines[0] == "all is well")


def test_a_broker_that_is_gone_is_removed(brokers: ThreadedCluster, ask: Command) -> None:
    """Not while it is alive, and only once."""
    assert "is alive: stop it" in ask.refused("broker", "remove", "3")
    brokers.create_topic("t", [3, 1, 2])
    brokers.kill(3)
    unasked = ask.try_to("broker", "remove", "3")
    assert unasked.code == 2
    assert "add --yes" in unasked.error
    told = ask("broker", "remove", "3", "--yes", "-o", "json").json
    assert told == {"removed": 3, "replicas_left": 1}
    assert "is not registered" in ask.refused("broker", "remove", "3", "--yes")


def test_why_tells_the_story_of_all_brokers(brokers: ThreadedCluster, ask: Command) -> None:
    """Creation, the controller's election and the leader's ISR change, in the order of time."""
    brokers.create_topic("t", [3, 1, 2])
    title, made, because, seen = ask("why", "leader", "t-0").lines
    assert title == "t-0  led by 3 in leader epoch 0  replicas 3, 1, 2  ISR 3, 1, 2  needs 2"
    assert "partition created, in leader epoch 0, by broker " in made
    assert because == "  because     partition 0 of topic t was created"
    assert seen == "  seen        replicas [3, 1, 2], ISR [3, 1, 2]; broker 3 leads"
    brokers.kill(3)
    brokers.until_state(lambda state: state.leader == 1, "t")
    brokers.restart(3)
    brokers.until_state(lambda state: len(state.isr) == 3, "t")
    story = ask("why", "isr", "t-0", "-o", "json").json
    assert (story["leader"], story["leader_epoch"], story["silent"]) == (1, 1, {})
    kinds = [(entry["kind"], entry["leader_epoch"]) for entry in story["decisions"]]
    assert ("leader elected", 1) in kinds
    assert kinds[-1] == ("isr expanded", 1)
    times = [entry["time"] for entry in story["decisions"]]
    assert times == sorted(times)
    assert all(time.startswith("20") for time in times)
    elected = next(entry for entry in story["decisions"] if entry["kind"] == "leader elected")
    assert elected["cause"].startswith("broker 3 died")
    assert all(entry["cause"] and entry["evidence"] for entry in story["decisions"])
    told = ask("why", "leader", "t-0").lines
    del told[1:4]  # The creation, as above.
    assert told[1].endswith(f"leader elected, in leader epoch 1, by broker {elected['broker']}")
    assert told[2].split()[0] == "because"
    assert told[3].split()[0] == "seen"
    assert "has partitions 0 to 0, not 7" in ask.refused("why", "isr", "t-7")
    assert "there is no topic 'u'" in ask.refused("why", "isr", "u-0")
    assert "is no partition" in ask.misused("why", "isr", "t")


def test_leaders_are_elected_by_command(brokers: ThreadedCluster, ask: Command) -> None:
    """Preferred ones when they are back; unclean ones only where asked for."""
    brokers.create_topic("t", [3, 1, 2])
    brokers.create_topic("pair", [3, 2])
    brokers.kill(3)
    brokers.until_state(lambda state: state.leader == 1, "t")
    refused = ask.try_to("partition", "elect", "t-0", "-o", "json")
    assert refused.code == 1
    assert "the preferred leader 3 is not alive" in refused.json[0]["note"]
    brokers.restart(3)
    brokers.until_state(lambda state: len(state.isr) == 3, "t")
    brokers.until_state(lambda state: len(state.isr) == 2, "pair")
    rows = ask("partition", "elect", "--preferred", "--all", "-o", "json").json
    assert sorted((row["partition"], row["outcome"], row["leader"]) for row in rows) == [
        ("pair-0", "elected", 3),
        ("t-0", "elected", 3),
    ]
    (row,) = ask("partition", "elect", "t", "-o", "json").json
    assert row["outcome"] == "not needed"
    assert "either" in ask.misused("partition", "elect", "--preferred", "--unclean", "t-0")
    assert "say --all" in ask.misused("partition", "elect")
    assert "partitions 0 to 0" in ask.refused("partition", "elect", "t-3")


def test_an_unclean_election_is_asked_about(brokers: ThreadedCluster, ask: Command) -> None:
    """2 left the ISR, then 3 died: only --unclean with --yes lets 2 lead."""
    brokers.create_topic("t", [3, 2], settings={"min.insync.replicas": "1"})
    brokers.kill(2)
    brokers.until_state(lambda state: state.isr == (3,), "t")
    brokers.kill(3)
    brokers.restart(2)
    brokers.until_state(lambda state: state.leader == -1, "t")
    answer = ask.try_to("cluster", "health", "-o", "json")
    (finding,) = answer.json["findings"]
    assert finding["remedy"].startswith("start broker 3; `ottla partition elect --unclean t-0`")
    unasked = ask.try_to("partition", "elect", "--unclean", "t-0")
    assert unasked.code == 2
    assert "add --yes" in unasked.error
    (row,) = ask("partition", "elect", "--unclean", "t-0", "--yes", "-o", "json").json
    assert (row["outcome"], row["leader"]) == ("elected", 2)
    (decision,) = [
        entry
        for entry in ask("why", "leader", "t-0", "-o", "json").json["decisions"]
        if "unclean" in entry["evidence"]
    ]
    assert decision["kind"] == "leader elected"


def test_partitions_are_moved_by_hand_and_by_plan(
    brokers: ThreadedCluster, ask: Command, tmp_path: Path
) -> None:
    """Shown and asked about first; done when all new replicas are in sync; Kafka's file form."""
    brokers.create_topic("t", [1, 2], [2, 1])
    ask("produce", "t", "-p", "0", stdin="a\nb\n")
    assert ask.try_to("partition", "reassign", "t-0", "--to", "3,1").code == 2
    brokers.until_state(lambda state: state.replicas == (1, 2), "t")
    done = ask("partition", "reassign", "t-0", "--to", "3,1", "--wait", "--yes").out
    assert done.startswith("Done: 1 partition changes, 1 replica is copied, ")
    brokers.until_state(lambda state: state.replicas == (3, 1) and state.leader == 3, "t")
    assert ask("consume", "t", "-n", "2").lines == ["a", "b"]
    again = ask("partition", "reassign", "t-0", "--to", "3,1").out
    assert again == "They are there already.\n"
    plan = ask("partition", "plan", "t", "--brokers", "1,2", "-o", "json").json
    assert plan["version"] == 1
    assert [(e["partition"], sorted(e["replicas"])) for e in plan["partitions"]] == [(0, [1, 2])]
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    ask("partition", "reassign", "--plan", str(file), "--yes")
    ask("partition", "status", "--wait")
    brokers.until_state(lambda state: sorted(state.replicas) == [1, 2], "t")
    assert ask("partition", "status", "-o", "json").json == []
    assert ask("partition", "cancel", "--all").out == "Nothing of it moves.\n"
    assert "broker 9 is not alive" in ask.refused("partition", "plan", "t", "--brokers", "9")
    assert "no broker 9 is registered" in ask.refused(
        *("partition", "reassign", "t-0", "--to", "9", "--yes")
    )
    file.write_text("{}")
    assert "is no plan" in ask.refused("partition", "reassign", "--plan", str(file))


def test_a_move_that_cannot_end_is_shown_and_cancelled(
    brokers: ThreadedCluster, ask: Command
) -> None:
    """One that stays has died: the move waits, status tells, cancel goes back if copies allow."""
    brokers.create_topic("t", [1, 3])
    ask("produce", "t", stdin="a\n")
    brokers.kill(3)
    brokers.until_state(lambda state: state.isr == (1,), "t")
    begun = ask("partition", "reassign", "t-0", "--to", "2,3", "--yes").out
    assert begun.startswith("Begun: 1 partition changes, 1 replica is copied, ")
    brokers.until_state(lambda state: set(state.isr) == {1, 2}, "t")
    (row,) = ask("partition", "status", "-o", "json").json
    assert (row["partition"], row["to"], row["coming"], row["going"]) == ("t-0", [2, 3], [2], [1])
    found = ask.try_to("cluster", "health", "-o", "json").json["findings"]
    assert [(entry["trouble"], entry["cause"]) for entry in found] == [
        ("at min ISR", found[0]["cause"])
    ]
    assert found[0]["cause"].startswith("broker 3 is down; 2 in sync and")
    # One copy would be left of what two have acknowledged.
    assert "of 2 needed (min.insync.replicas)" in ask.try_to("partition", "cancel", "t-0").error
    ask("config", "set", "topic", "t", "min.insync.replicas=1")
    # The controller hears of the setting a moment later.
    until(lambda: ask.try_to("partition", "cancel", "t-0").out == "Cancelled t-0.\n")
    brokers.until_state(lambda state: set(state.replicas) == {1, 3}, "t")
    assert ask("partition", "status", "-o", "json").json == []
    assert ask("consume", "t", "-n", "1").lines == ["a"]


def test_load_is_evened_out(brokers: ThreadedCluster, ask: Command) -> None:
    """A plan moves nothing; applied, each leads and has as much; then there is nothing to do."""
    brokers.create_topic("t", [1, 2], [1, 2], [1, 2])
    shown = ask("cluster", "balance", "--plan").lines
    assert shown[0].split() == ["partition", "from", "to", "copied", "to", "size"]
    assert shown[-1].startswith("3 partitions change, 2 replicas are copied")
    brokers.until_state(lambda state: state.replicas == (1, 2), "t", 0)
    assert "The load is even: " in ask("cluster", "balance", "--apply", "--yes").out
    until(lambda: shares(ask) == [(1, 1), (1, 1), (1, 1)])
    assert ask("cluster", "balance", "--apply").out == "The load is even already.\n"
    assert "either" in ask.misused("cluster", "balance", "--plan", "--apply")


def test_a_broker_is_drained(brokers: ThreadedCluster, ask: Command) -> None:
    """Of leadership alone, or of everything; what is impossible is refused before it begins."""
    brokers.create_topic("t", [3, 1], [3, 2], [1, 2])
    brokers.create_topic("lone", [3])
    told = ask("broker", "drain", "3", "--leaders", "--yes")
    assert told.out == "Broker 3 leads nothing that others have any more.\n"
    assert "leads lone-0 on: no other broker has a replica" in told.error
    until(lambda: shares(ask)[2] == (1, 2))
    planned = ask("broker", "drain", "3", "--plan", "-o", "json").json
    assert len(planned["partitions"]) == 3
    assert ask("broker", "drain", "3", "--yes").out == "Broker 3 has no replicas any more.\n"
    until(lambda: shares(ask)[2] == (0, 0))
    assert ask("broker", "drain", "3").out == "Broker 3 has no replicas.\n"
    brokers.create_topic("all", [1, 2, 3])
    refused = ask.refused("broker", "drain", "3", "--yes")
    assert "only 2 brokers" in refused
    assert "--leaders" in refused
    assert "there is no broker 9" in ask.refused("broker", "drain", "9")


def test_a_dead_broker_is_drained(brokers: ThreadedCluster, ask: Command) -> None:
    """What it had is copied from the others, and health is whole without it."""
    brokers.create_topic("t", [3, 1], [2, 3])
    ask("produce", "t", "-p", "0", stdin="a\nb\n")
    brokers.kill(3)
    brokers.until_state(lambda state: state.leader == 1, "t", 0)
    assert ask.try_to("cluster", "health").code == 1
    assert ask("broker", "drain", "3", "--yes").out == "Broker 3 has no replicas any more.\n"
    assert ask("consume", "t", "-n", "2").lines == ["a", "b"]
    assert ask("cluster", "health").lines[0] == "all is well"


def test_a_topic_deleted_beside_a_dead_broker_says_when_its_name_is_free(
    brokers: ThreadedCluster, ask: Command
) -> None:
    """The dead broker is named at once, and the next creation is refused with the reason."""
    brokers.create_topic("t", [3, 1, 2])
    brokers.kill(3)
    told = ask("topic", "delete", "t", "--yes").out
    assert "Broker 3 is down and removes its replicas when it is back" in told
    refused = ask.refused("topic", "create", "t")
    assert "Topic 't' is being deleted" in refused
    brokers.restart(3)
    # The controller hears of the removal a moment after the broker is back.
    while ask.try_to("topic", "create", "t").code:
        time.sleep(0.1)
