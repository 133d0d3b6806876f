"""`ottla group describe` and `ottla why retention`: what readers are about to lose."""

from collections.abc import Callable

import pytest

import ottla.testing
from ottla.base.ids import TopicPartition
from ottla.client import sync
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command

# Each record is a segment, and too many as soon as it is written.
SMALL = {"internal_segment_bytes": "100", "retention_ms": "-1", "retention_bytes": "0"}


@pytest.fixture
def run(broker: ottla.testing.Broker) -> Command:
    return CommandHere(broker.bootstrap)


def write(broker: ottla.testing.Broker, topic: str, count: int) -> None:
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"value%d" % number, partition=0)
            producer.flush()


def stand(broker: ottla.testing.Broker, group: str, topic: str, offset: int) -> None:
    with sync.Admin(broker.bootstrap) as admin:
        admin.groups.set_offsets(group, {TopicPartition(topic, 0): offset})


def test_a_group_is_told_what_it_has_lost_and_will_lose(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """By the retention in force; nothing where nothing is deleted."""
    topic, group = make_topic(**SMALL), "loser"
    write(broker, topic, 4)
    stand(broker, group, topic, 1)
    (row,) = run("group", "describe", group, "-o", "json").json["partitions"]
    assert (row["lag"], row["deleted_unread"], row["time_left_ms"]) == (3, 0, 0)
    broker.apply_retention()
    (row,) = run("group", "describe", group, "-o", "json").json["partitions"]
    assert (row["log_start"], row["deleted_unread"], row["time_left_ms"]) == (4, 3, None)
    assert "3 deleted unread" in run("group", "describe", group).out
    kept = make_topic(retention_ms="-1")
    write(broker, kept, 2)
    stand(broker, "keeper", kept, 1)
    (row,) = run("group", "describe", "keeper", "-o", "json").json["partitions"]
    assert (row["deleted_unread"], row["time_left_ms"], row["loss"]) == (0, None, None)


def test_a_hold_and_its_end_are_told(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """Who is waited for and where they stand; what was deleted unread when the bound was set."""
    topic = make_topic(ottla_retention_hold_groups="slow", **SMALL)
    write(broker, topic, 4)
    stand(broker, "slow", topic, 1)
    broker.apply_retention()
    answer = run("why", "retention", f"{topic}-0", "-o", "json").json
    assert (answer["log_start_offset"], answer["held_bytes"] > 0) == (1, True)
    assert [(row["group"], row["committed"], row["unread"]) for row in answer["readers"]] == [
        ("slow", 1, 3)
    ]
    assert answer["deleted_unread"] == []
    shown = run("why", "retention", f"{topic}-0").out
    assert "waits for readers: up to 10,737,418,240 bytes" in shown
    assert "are kept for them alone" in shown
    run("topic", "alter", topic, "--set", "ottla.retention.hold.max.bytes=0")
    broker.apply_retention()
    answer = run("why", "retention", f"{topic}-0", "-o", "json").json
    (told,) = answer["deleted_unread"]
    assert told["cause"] == "offsets 1 to 4 are deleted, which group slow has not read"
    assert "which group slow has not read" in run("why", "retention", f"{topic}-0").out
    assert "has partitions 0 to 0" in run.refused("why", "retention", f"{topic}-7")
