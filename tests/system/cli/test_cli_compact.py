"""`ottla topic compact` and `ottla why compaction`, as people and programs use them."""

from collections.abc import Callable

import ottla.testing
from ottla.client import sync
from tests.system.cli.ottla_command import Command


def overwrite(broker: ottla.testing.Broker, topic: str, count: int = 60) -> None:
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"value%d" % number, key=b"key%d" % (number % 3), partition=0)


def test_a_topic_is_compacted_on_demand_and_says_so(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """The story before, the command, the story after; and the last value of each key."""
    topic = make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    overwrite(broker, topic)
    before = run("why", "compaction", f"{topic}-0").out
    assert f"{topic}-0 on broker " in before
    assert "nothing to compact" in before
    assert "held up by the active segment" in before
    assert "last pass  none since the broker's start" in before
    done = run("topic", "compact", topic, "--now", "--wait", "-o", "json").json
    assert [(row["partition"], row["clean_up_to"], row["records_kept"]) for row in done] == [
        (0, 60, 3)
    ]
    after = run("why", "compaction", f"{topic}-0", "-o", "json").json
    (replica,) = after["replicas"]
    assert (replica["first_dirty"], replica["verdict"]) == (60, "nothing to compact")
    assert replica["last"]["records_read"] == 60
    again = run("topic", "compact", topic, "--now", "--wait").out
    assert "clean up to" in again


def test_a_dry_run_says_that_nothing_was_changed(
    run: Command, broker: ottla.testing.Broker, make_topic: Callable[..., str]
) -> None:
    """What is in the active segment is not counted: here that is all."""
    topic = make_topic(cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    overwrite(broker, topic)
    told = run("topic", "compact", topic, "--dry-run")
    assert "Nothing was changed." in told.out
    (row,) = run("topic", "compact", topic, "--dry-run", "-o", "json").json
    assert (row["dirty_bytes"], row["would_go"]) == (0, 0)


def test_what_makes_no_sense_is_refused(run: Command, make_topic: Callable[..., str]) -> None:
    """Neither or both of --dry-run and --now; a topic that keeps everything; no topic."""
    topic = make_topic()
    for words, remedy in (
        ((), "say --dry-run, or --now"),
        (("--dry-run", "--now"), "say --dry-run, or --now"),
        (("--dry-run", "--wait"), "--wait goes with --now"),
    ):
        answer = run.try_to("topic", "compact", topic, *words)
        assert (answer.code, remedy in answer.error) == (2, True)
    assert "set cleanup.policy=compact" in run.refused("topic", "compact", topic, "--now")
    told = run("why", "compaction", f"{topic}-0").out
    assert told.startswith(f"{topic}-0: not compacted: cleanup.policy is delete (set by: default)")
    assert f"`ottla config set topic {topic} cleanup.policy=compact`" in told
    answer = run("why", "compaction", f"{topic}-0", "-o", "json").json
    assert answer == {
        "partition": f"{topic}-0",
        "verdict": "not compacted: cleanup.policy is delete (set by: default)",
        "replicas": [],
    }
    assert "there is no topic" in run.refused("topic", "compact", "nowhere", "--now")
