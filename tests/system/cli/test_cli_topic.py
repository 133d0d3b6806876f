"""`ottla topic`, as people and programs use it."""

from collections.abc import Callable

from tests.system.cli.ottla_command import Command


def test_a_topic_from_its_creation_to_its_end(run: Command, name: str) -> None:
    """Each step is told in a sentence, and each is visible in the next."""
    created = run("topic", "create", name, "-p", "3", "--set", "retention.ms=3600000")
    assert created.out == (
        f"Created {name}: 3 partitions, one copy of each: while the broker that has it is down it "
        "can be neither read nor written, and what that disk loses is lost. Records are deleted "
        "after 1 hour.\n"
    )
    assert f"{name}  " in run("topic", "list").out
    described = run("topic", "describe", name).lines
    assert described[0].startswith(f"{name}  id ")
    assert described[1].split() == [
        *("partition", "leader", "replicas", "isr", "start", "offset", "end", "offset")
    ]
    assert described[2].split() == ["0", "0", "0", "0", "0", "0"]
    assert described[-3].split() == ["retention.ms", "1h", "topic"]
    assert described[-1].startswith(
        "Note: segment.ms=604800000 is above retention.ms=3600000: only whole segments are deleted"
    )
    altered = run(
        *("topic", "alter", name, "-p", "4", "-s", "segment.ms=60000", "-u", "retention.ms")
    )
    assert f"{name} has 4 partitions now, 3 before. Keys are placed anew" in altered.out
    assert [line.split() for line in altered.lines[:3]] == [
        ["setting", "old", "new"],
        ["segment.ms", "604800000", "60000"],
        ["retention.ms", "3600000", "604800000"],
    ]
    assert run("topic", "delete", name, "--yes").out == (
        f"Deleted {name}. The brokers remove the files, and so free the disk, 1 hour from now "
        "(delete.topic.trash.ms; until then `ottla undo` restores), or at once where it is full.\n"
    )
    assert "there is no topic" in run.refused("topic", "describe", name)


def test_json_of_topics_has_stable_names(run: Command, name: str) -> None:
    """A program reads the same fields whatever the tables look like."""
    created = run("topic", "create", name, "-s", "cleanup.policy=compact", "-o", "json").json
    topic_id = created.pop("topic_id")
    assert len(topic_id) == 36
    listed = {"name": name, "partition_count": 1, "replication_factor": 1, "internal": False}
    (setting,) = created.pop("settings")
    assert setting == {
        "setting": "cleanup.policy",
        "value": "compact",
        "source": "topic",
        "read_only": False,
        "synonyms": [
            {"setting": "cleanup.policy", "value": "compact", "source": "topic"},
            {"setting": "log.cleanup.policy", "value": "delete", "source": "default"},
        ],
    }
    assert created == {**listed, "created": True, "replicas_down": []}
    assert {**listed, "topic_id": topic_id} in run("topic", "list", "-o", "json").json
    described = run("topic", "describe", name, "-o", "json").json
    assert described == {
        **listed,
        "topic_id": topic_id,
        "partitions": [
            {
                "partition": 0,
                "leader": 0,
                "leader_epoch": 0,
                "replicas": [0],
                "isr": [0],
                "start_offset": 0,
                "end_offset": 0,
            }
        ],
        "settings": [setting],
        "notes": [],
    }
    altered = run("topic", "alter", name, "-s", "cleanup.policy=delete", "-o", "json").json
    assert altered["changed"] == [{"setting": "cleanup.policy", "old": "compact", "new": "delete"}]
    deleted = run("topic", "delete", name, "--yes", "-o", "json").json
    assert deleted == [{"name": name, "deleted": True}]


def test_creating_twice_is_an_error_unless_it_is_allowed(run: Command, name: str) -> None:
    """`--if-not-exists` lets scripts be run again."""
    run("topic", "create", name)
    assert "TOPIC_ALREADY_EXISTS" in run.refused("topic", "create", name)
    again = run("topic", "create", name, "--if-not-exists")
    assert again.out.startswith(f"There is already {name}: ")


def test_wrong_words_about_topics_are_told_with_the_right_ones(
    run: Command, make_topic: Callable[..., str]
) -> None:
    """Names that nobody knows are answered with the nearest (kafka-python #2671)."""
    topic = make_topic()
    assert f"did you mean {topic}" in run.refused("topic", "describe", f"{topic}x"[1:])
    wrong = run.refused("topic", "create", "new", "-s", "retention.m=5")
    assert "did you mean retention.ms" in wrong
    assert "whole number" in run.refused("topic", "alter", topic, "-s", "retention.ms=soon")
    assert "only grow" in run.refused("topic", "alter", topic, "-p", "1")
    assert "'x' is not NAME=VALUE" in run.misused("topic", "create", "new", "-s", "x")
    assert "nothing to change" in run.misused("topic", "alter", topic)


def test_deleting_asks_and_refuses_where_nobody_can_answer(
    run: Command, make_topic: Callable[..., str]
) -> None:
    """Without a terminal and without --yes nothing is deleted; one unknown name stops all."""
    topic = make_topic()
    assert "add --yes" in run.misused("topic", "delete", topic)
    assert "there is no topic" in run.refused("topic", "delete", topic, "nonexistent", "--yes")
    assert run("topic", "describe", topic).code == 0
