"""Moves of partitions that keep to a rate."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command
from tests.system.cli.threaded_cluster import ThreadedCluster

RATE = 100_000
RECORD = "x" * 9_000
COUNT = 40


@pytest.fixture
def brokers() -> Iterator[ThreadedCluster]:
    with ThreadedCluster({"auto.leader.rebalance.enable": "false"}) as running:
        yield running


@pytest.fixture
def ask(brokers: ThreadedCluster) -> Command:
    return CommandHere(brokers.bootstrap)


def fill(brokers: ThreadedCluster) -> None:
    """A topic on brokers 1 and 2, with batches of one record."""
    brokers.create_topic("t", [1, 2])
    settings = {"bootstrap.servers": brokers.bootstrap, "batch.size": len(RECORD), "log_level": 0}
    producer = Producer(settings)
    for _ in range(COUNT):
        producer.produce("t", RECORD)
    assert producer.flush(200) == 0


def throttled(ask: Command) -> dict[str, str]:
    """Settings of the throttle that are set anywhere."""
    rows = ask("config", "get", "topic", "t", "--changed", "-o", "json").json
    for broker in (1, 2, 3):
        rows += ask("config", "get", "broker", str(broker), "--changed", "-o", "json").json
    return {row["setting"]: row["value"] for row in rows if "throttled" in row["setting"]}


def test_a_throttled_move_is_no_faster_than_its_rate(
    brokers: ThreadedCluster, ask: Command
) -> None:
    """And nothing is throttled after it."""
    fill(brokers)
    began_s = time.monotonic()
    done = ask("partition", "reassign", "t", "--to", "3,1", "--throttle", "100k", "--wait", "-y")
    took_s = time.monotonic() - began_s

    assert done.out.startswith("Done: 1 partition changes, 1 replica is copied")
    # But for the first portion, of a tenth of a second, and the last batch.
    assert took_s >= (COUNT - 2) * len(RECORD) / RATE - 0.1
    assert throttled(ask) == {}
    assert ask("consume", "t", "-n", str(COUNT)).lines == [RECORD] * COUNT


def test_a_throttle_stays_until_it_is_removed(brokers: ThreadedCluster, ask: Command) -> None:
    """As kafka-reassign-partitions sets it; while something moves it is not taken away."""
    fill(brokers)
    begun = ask("partition", "reassign", "t", "--to", "3,1", "--throttle", "1", "-y").out
    assert "`ottla partition unthrottle` removes the throttle after it" in begun
    assert throttled(ask) == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
        "leader.replication.throttled.rate": "1",
        "follower.replication.throttled.rate": "1",
    }
    assert "1 partition not moved yet, t-0 among them" in ask.refused("partition", "unthrottle")
    (row,) = ask("partition", "status", "-o", "json").json
    assert row["coming"] == [3]
    ask("partition", "cancel", "--all")
    ask("partition", "status", "--wait")
    assert ask("partition", "unthrottle").out == "Nothing is throttled any more; t was.\n"
    assert throttled(ask) == {}
    assert ask("partition", "unthrottle").out == "No topic was throttled.\n"


def test_a_strange_rate_is_no_rate(brokers: ThreadedCluster, ask: Command) -> None:
    """Words are refused before anything moves."""
    brokers.create_topic("t", [1])
    for rate in ("0", "-5", "fast"):
        ask.misused("partition", "reassign", "t", "--to", "2", "--throttle", rate, "-y")
